"""Every script in examples/ runs as it stands, without a warning, and prints something."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import spacy
from documentation import blocks, page, section
from spacy.training import Example
from thinc.api import Config

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted({*FOLDER.glob("*.py")} - {FOLDER / "service.py"})  # see test_service.py


def test_there_are_examples():
    assert EXAMPLES


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(script, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize(
    "name, heading", [("alternatives", "Other readings"), ("reasons", "Why this span?")]
)
def test_what_an_example_prints_is_on_its_page(name, heading, capsys):
    runpy.run_path(str(EXAMPLES[0].parent / f"{name}.py"), run_name="__main__")
    [printed] = blocks(section("docs/readings.md", heading), "")
    assert printed in capsys.readouterr().out


def test_addresses_are_read_well_and_what_is_wrong_is_what_the_model_is_least_sure_of(capsys):
    runpy.run_path(str(EXAMPLES[0].parent / "addresses.py"), run_name="__main__")
    *spans, last = capsys.readouterr().out.splitlines()
    assert spans[0] == "16 Mill Lane New Romney TN28 8AB"
    assert [span.split()[1:] for span in spans[1:5]] == [
        ["NUMBER", "16"],
        ["STREET", "Mill", "Lane"],
        ["CITY", "New", "Romney"],
        ["CODE", "TN28", "8AB"],
    ]
    chances = {False: [], True: []}
    for span in spans:
        if span.startswith("  "):
            chances[span.endswith("wrong")].append(float(span.split()[0]))
    assert max(chances[True]) < min(chances[False])
    assert float(last.rsplit(" ", 1)[1]) > 90


def test_parts_of_ones_own_on_their_page_are_those_of_the_example():
    example = runpy.run_path(str(EXAMPLES[0].parent / "own_parts.py"))
    [block] = blocks(
        section("docs/own-parts.md", "Your own trainer, decoder, template or dense score"), "ini"
    )
    config = Config().from_str(
        f"[components]\n\n[components.hocrf]\n\n[components.hocrf.model]\n{block}"
    )
    nlp = spacy.blank("xx")
    pipe = nlp.add_pipe("hocrf", config=config["components"]["hocrf"])
    data = [example["read"](nlp, line) for line in example["RECIPES"]]
    optimizer = nlp.initialize(lambda: data)
    before = nlp.update(data, sgd=optimizer)["hocrf"]
    assert nlp.update(data)["hocrf"] < before
    assert type(pipe.run) is example["DescentRun"]
    assert pipe.structure.n_dense == 26 * pipe.structure.scheme.n_labels


def test_a_component_over_a_shared_encoder_learns_as_its_page_has_it():
    block = blocks(page("docs/encoder.md"), "ini")[0]
    config = Config().from_str(f"[components]\n\n{block}")["components"]
    nlp = spacy.blank("xx")
    for name in ("tok2vec", "hocrf"):
        nlp.add_pipe(
            name, config={key: config[name][key] for key in config[name] if key != "factory"}
        )
    assert nlp.get_pipe("tok2vec").listening_components == ["hocrf"]
    text, entities = "Ada bores Max", [(0, 3, "PERSON"), (10, 13, "PERSON")]
    data = [Example.from_dict(nlp.make_doc(text), {"entities": entities})]
    optimizer = nlp.initialize(lambda: data)
    losses = [nlp.update(data, sgd=optimizer)["hocrf"] for _ in range(10)]
    assert losses[-1] < losses[0]


def test_features_and_joint_features_of_the_pages_work_together():
    features = blocks(page("docs/features.md"), "ini")[0]
    joint = section("docs/groups.md", "Joint features")
    above = "[components]\n[components.hocrf]\n[components.hocrf.model]\n"
    config = Config().from_str(above + features + blocks(joint, "ini")[0])
    config["components"]["hocrf"]["joint"]["group_by"] = "hocrf_group"
    nlp = spacy.blank("xx")
    nlp.add_pipe("hocrf", config=config["components"]["hocrf"])
    text, entities = "Ada bores Max", [(0, 3, "PERSON"), (10, 13, "PERSON")]
    nlp.initialize(lambda: [Example.from_dict(nlp.make_doc(text), {"entities": entities})])
    assert len(nlp.get_pipe("hocrf").joint.weights) == 1


def test_saving_as_its_page_says_leaves_a_pipeline_that_loads(tmp_path, monkeypatch):
    [code] = blocks(section("docs/troubleshooting.md", "Saving safely"), "python")
    monkeypatch.chdir(tmp_path)
    nlp = spacy.blank("xx")
    nlp.add_pipe("hocrf")
    nlp.to_disk("model")
    nlp.add_pipe("hocrf_tagger")
    nlp.to_disk("model/model-last")
    exec(code, {})
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert spacy.load("model").pipe_names == ["hocrf", "hocrf_tagger"]
