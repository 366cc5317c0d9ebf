"""`spacy-hocrf.ConsoleLogger.v1` in spaCy's own training loop, and LOSS in that of others."""

import io
import re

import numpy as np
import pytest
import spacy
import srsly
from small_corpus import documents, examples, learner_of
from spacy.tokens import DocBin
from spacy.training.initialize import init_nlp
from spacy.training.loop import train

from spacy_hocrf.cli.config import ENDING, starting_config
from spacy_hocrf.pipeline import console

pytestmark = pytest.mark.slow
LBFGS = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 1.0}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("console") / "train.spacy"
    made = examples(spacy.blank("xx"), documents(20))
    DocBin(docs=[example.reference for example in made]).to_disk(path)
    return path


def trained(
    corpus, *, components=(), logger=None, trainer=None, source=None, augmenter=None, **training
):
    """A pipeline that `spacy train` has trained, and what it printed."""
    config = starting_config("en", None)
    config["components"]["hocrf"]["trainer"] = trainer or LBFGS
    config["components"]["hocrf"]["model"]["order"] = 1
    config["components"]["hocrf"]["decoder"] = {"@misc": "spacy-hocrf.Viterbi.v1"}
    for name in components:
        config["components"][name] = {**config["components"]["hocrf"], "scores_key": name}
        config["nlp"]["pipeline"].append(name)
    config["paths"].update(train=str(corpus), dev=str(corpus))
    config["corpora"]["train"]["augmenter"] = augmenter
    config["training"].update({"max_steps": 40, "eval_frequency": 10, **training})
    logger = logger or {}
    if "@loggers" not in logger:
        logger = {**config["training"]["logger"], **logger}
    config["training"]["logger"] = logger
    if source is not None:
        config["components"]["hocrf"] = {"source": str(source)}
    nlp, out = init_nlp(config), io.StringIO()
    train(nlp, None, stdout=out, stderr=io.StringIO())
    return nlp, re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())


def rows(printed):
    return [line.split() for line in printed.splitlines() if re.match(r"\s*\d+ ", line)]


def test_the_table_has_objective_gradient_and_time(corpus, tmp_path):
    file = tmp_path / "new" / "log.jsonl"
    nlp, printed = trained(corpus, logger={"output_file": str(file)})
    found, pipe = rows(printed), nlp.get_pipe("hocrf")
    header = next(line for line in printed.splitlines() if "OBJECTIVE" in line).split()
    scores = "ENTS_F ENTS_P ENTS_R HOCRF_TEXTS_ACC"
    assert header == f"E # OBJECTIVE GRADIENT SEC/STEP {scores} SCORE".split()
    assert [row[1] for row in found] == ["0", "10", "20", "30", "40"]
    assert all(len(row) == len(header) for row in found)
    objective = [float(row[2]) for row in found]
    assert objective == sorted(objective, reverse=True) and objective[0] > objective[-1]
    value, gradient = pipe.objective()(pipe.run.weights)
    assert objective[-1] == pytest.approx(value, abs=0.01)
    assert float(found[-1][3]) == pytest.approx(float(np.linalg.norm(gradient)), rel=0.05)
    assert found[0][4] == "-" and all(float(row[4]) >= 0 for row in found[1:])
    assert found[-1][5:] == ["100.00"] * 4 + ["1.00"]
    logged = list(srsly.read_jsonl(file))
    assert [row["step"] for row in logged] == [0, 10, 20, 30, 40]
    assert logged[-1]["losses"]["hocrf"] == pytest.approx(value)
    assert logged[0]["converged"] == [] and logged[-1]["converged"] == ["hocrf"]


def test_convergence_is_said_once_and_so_is_its_lack(corpus):
    nlp, printed = trained(corpus)
    assert printed.count("hocrf at step") == 1 and "W020" not in printed
    (step,) = re.findall(r"✔ hocrf at step (\d+):", printed)
    run = nlp.get_pipe("hocrf").run
    assert int(step) < 40 and not run.running and run.iterations == int(step) + 1
    _, printed = trained(corpus, max_steps=4, eval_frequency=2)
    assert "hocrf at step" not in printed and printed.count("[W020] 'hocrf'") == 1


@pytest.mark.parametrize("size, steps, texts", [(1, 9, 10), (1000, 40, 20)])
def test_texts_that_had_no_batch_before_the_end_are_said(corpus, tmp_path, size, steps, texts):
    """A component with a source knows no others than those of its batches."""
    nlp, _ = trained(corpus)
    nlp.to_disk(tmp_path)
    batcher = {"@batchers": "spacy.batch_by_sequence.v1", "size": size, "get_length": None}
    other, printed = trained(corpus, source=tmp_path, batcher=batcher, max_steps=steps)
    assert other.get_pipe("hocrf").texts_since_loaded == texts
    assert ("W053" in printed) == (texts < 20)


def test_texts_that_an_augmenter_makes_are_not_taken_for_late_ones(corpus):
    augmenter = {"@augmenters": "spacy.lower_case.v1", "level": 0.5}
    nlp, printed = trained(
        corpus, augmenter=augmenter, max_steps=3, eval_frequency=1, max_epochs=-1
    )
    assert len(learner_of(nlp.get_pipe("hocrf")).corpus) > 20 and "W053" not in printed


@pytest.mark.parametrize("much, warned", [(0.0, True), (0.05, False)])
def test_an_end_from_which_on_little_is_gained_needs_no_warning(corpus, monkeypatch, much, warned):
    monkeypatch.setattr(console, "MIN_DECREASE", much)
    settings = {**LBFGS, "gradient_tolerance": 0.0}
    exact = {**settings, "improvement_tolerance": 0.0}
    _, printed = trained(corpus, trainer=exact, max_steps=25)
    assert "hocrf at step" not in printed and ("W020" in printed) == warned


def test_the_config_ends_where_the_objective_gains_hardly_anything(corpus):
    nlp, printed = trained(corpus, trainer={**LBFGS, **ENDING})
    assert "converged: improvement" in printed and "W020" not in printed
    exact, _ = trained(corpus)
    ended, optimum = nlp.get_pipe("hocrf").run, exact.get_pipe("hocrf").run
    assert ended.evaluations < optimum.evaluations
    assert ended.loss == pytest.approx(optimum.loss, rel=5e-3)


def test_several_components_have_columns_of_their_own(corpus):
    _, printed = trained(corpus, components=["second"], max_steps=2)
    assert "OBJ HOCRF" in printed and "OBJ SECOND" in printed and "GRAD SECOND" in printed


def test_trainers_without_a_gradient_have_a_dash(corpus):
    nlp, printed = trained(corpus, trainer={"@misc": "spacy-hocrf.SGD.v1"}, max_steps=20)
    assert [row[3] for row in rows(printed)] == ["-"] * 3
    assert float(rows(printed)[0][2]) > 0 and nlp("Ada") is not None


@pytest.mark.parametrize("bar", ["train", "eval"])
def test_a_progress_bar_changes_nothing(corpus, bar):
    _, printed = trained(corpus, logger={"progress_bar": bar}, max_steps=20)
    assert len(rows(printed)) == 3
    _, silent = trained(corpus, logger={"console_output": False}, max_steps=20)
    assert not rows(silent)


def test_loss_is_the_objective_however_seldom_it_is_shown(corpus):
    """spaCy's logger sums what components report between two evaluations."""
    logger = {"@loggers": "spacy.ConsoleLogger.v1", "progress_bar": False}
    printed = []
    for frequency in (10, 40):
        nlp, text = trained(corpus, logger=dict(logger), eval_frequency=frequency)
        printed.append({row[1]: float(row[2]) for row in rows(text)})
    assert (
        printed[0]["40"]
        == printed[1]["40"]
        == pytest.approx(nlp.get_pipe("hocrf").run.loss, abs=0.01)
    )
    assert sorted(printed[0].values(), reverse=True) == list(printed[0].values())
