"""Every sample of features in the documentation states its F1 on Cora, and this trains it by `spacy train`.

60 of the 300 training references are the development part, as in project/references. Samples that name
en_core_web_md need it: HOCRF_VECTORS may name a folder or a package that has the same.
"""

import importlib.util
import os
import re
from pathlib import Path

import pytest
import spacy
from documentation import ROOT, page, with_parents
from spacy.cli.train import train
from spacy.tokens import DocBin
from spacy.training import Corpus
from spacy.util import is_package
from thinc.api import Config

from spacy_hocrf.cli.config import starting_config

PAGES = ("docs/features.md", "docs/knowledge.md", "docs/encoder.md")
CORA = Path(os.environ.get("HOCRF_DATA", "")) / "hosemicrf" / "ref" / "ref.train"
CONVERT = ROOT / "project" / "references" / "scripts" / "convert_cora.py"
OUTSIDE = "en_core_web_md"
STATED = re.compile(r"\bF1 of (\d\d\.\d)\b")
TOLERANCE = 0.35  # one span of 318 more or less: other instruction sets round otherwise

pytestmark = pytest.mark.skipif(
    not CORA.is_file(),
    reason="needs Cora: set HOCRF_DATA to a folder with hosemicrf/ref/ref.train",
)


def samples():
    """The blocks of features, each with the text up to the next block, by the heading above it."""
    sections = re.split(r"^#+ (.+)\n", "\n".join(map(page, PAGES)), flags=re.MULTILINE)[1:]
    found = {}
    for title, text in zip(sections[::2], sections[1::2]):
        parts = re.split(r"^```ini\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
        for config, after in zip(parts[1::2], parts[2::2]):
            if "components.hocrf.model.features" in config:
                assert title not in found, title
                found[title] = config, after
    return found


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    spec = importlib.util.spec_from_file_location("convert_cora", CONVERT)
    convert = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(convert)
    docs = list(convert.read_docs(CORA, spacy.blank("en").vocab))
    folder = tmp_path_factory.mktemp("cora")
    DocBin(docs=docs[: -convert.DEV]).to_disk(folder / "train.spacy")
    DocBin(docs=docs[-convert.DEV :]).to_disk(folder / "dev.spacy")
    return folder


def f1_of(sample, corpus, output):
    """Of a config with the sample in place of the default block, on the development part."""
    outside = os.environ.get("HOCRF_VECTORS", OUTSIDE)
    config = starting_config("en", None)
    if sample:
        del config["components"]["hocrf"]["model"]["features"]
    sample = Config().from_str(with_parents(sample.replace(f'"{OUTSIDE}"', f'"{outside}"')))
    config = config.merge(sample)
    for part in ("train", "dev"):
        config["paths"][part] = str(corpus / f"{part}.spacy")
        config["corpora"][part]["gold_preproc"] = True
    config["training"]["eval_frequency"] = config["training"]["max_steps"]
    config.to_disk(output / "config.cfg")
    train(output / "config.cfg", output)
    nlp = spacy.load(output / "model-last")
    reader = Corpus(corpus / "dev.spacy", gold_preproc=True)
    return 100 * nlp.evaluate(list(reader(nlp)))["ents_f"]


def test_there_are_samples():
    assert len(samples()) >= 7


@pytest.mark.slow
@pytest.mark.parametrize("title", samples())
def test_a_sample_of_features_is_as_good_as_it_says(title, corpus, tmp_path, capsys):
    config, after = samples()[title]
    stated = STATED.search(after)
    assert stated, f"no F1 is stated below\n{config}"
    if OUTSIDE in config and not os.environ.get("HOCRF_VECTORS") and not is_package(OUTSIDE):
        pytest.skip(f"needs {OUTSIDE}: install it, or set HOCRF_VECTORS")
    found = f1_of(config, corpus, tmp_path)
    with capsys.disabled():
        print(f"\n{title}: F1 {found:.1f} on Cora's development part, {stated[1]} stated")
    assert found == pytest.approx(float(stated[1]), abs=TOLERANCE)


@pytest.mark.slow
def test_the_default_is_as_good_as_it_says(corpus, tmp_path):
    [stated] = re.findall(r"the default gives an F1 of (\d\d\.\d)\.", page(PAGES[0]))
    assert f1_of("", corpus, tmp_path) == pytest.approx(float(stated), abs=TOLERANCE)
