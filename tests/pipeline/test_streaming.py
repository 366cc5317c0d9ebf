"""`spacy train` on a corpus that is streamed, `max_epochs = -1`: spaCy keeps no Examples then, and
initializes components with the first 100 of them, so that ours is told where the corpus is.
"""

import io

import pytest
import spacy
from joint_config import joint
from small_corpus import PEOPLE, PLACES, SENTENCES, untrained
from spacy.tokens import DocBin, Span
from spacy.training import Corpus
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config
from thinc.api import Config

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*:UserWarning")]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A folder of two `.spacy` files; the second has a label that the first 100 texts lack."""
    folder = tmp_path_factory.mktemp("corpus")
    nlp = spacy.blank("xx")
    docs = [annotated(nlp, number) for number in range(130)]
    for name, part in (("a", docs[:105]), ("b", docs[105:])):
        DocBin(docs=part).to_disk(folder / f"{name}.spacy")
    return folder


def annotated(nlp, number):
    """A text with two entities; every fifth one is of an office from number 110 on."""
    person, place = PEOPLE[number % 5], PLACES[number % 4]
    doc = nlp(SENTENCES[number % 3].format(person=person, place=f"{place} {number}"))
    kind = "OFFICE" if number >= 110 and number % 5 == 0 else "PERSON"
    spans = ((person, kind), (place, "PLACE"))
    found = [
        doc.char_span(doc.text.index(text), doc.text.index(text) + len(text), label)
        for text, label in spans
    ]
    doc.set_ents([Span(doc, span.start, span.end, span.label_) for span in found])
    return doc


def spacy_train(corpus, folder, *, streamed):
    """What `spacy train` does with a config file; the pipeline and the rows of its log."""
    config = Config().from_str(untrained().config.to_str(), interpolate=False)
    reader = {"@readers": "spacy.Corpus.v1", "path": str(corpus)}
    config["corpora"] = {"train": reader, "dev": reader}
    config["training"].update(max_steps=25, eval_frequency=5, patience=0)
    config["training"]["batcher"] = {"@batchers": "spacy.batch_by_sequence.v1", "size": 20}
    config["components"]["hocrf"]["trainer"]["sigma"] = "auto"
    if streamed:
        config["training"]["max_epochs"] = -1
        config["initialize"]["components"]["hocrf"] = {"corpus": "${corpora.train}"}
    folder.mkdir()
    config.to_disk(folder / "config.cfg")
    nlp = init_nlp(load_config(folder / "config.cfg", interpolate=False))
    log = io.StringIO()
    train(nlp, folder, stdout=log, stderr=log)
    return nlp, [line.split() for line in log.getvalue().splitlines() if line[:1] == " "]


def test_a_streamed_corpus_gives_the_same_model_to_the_last_bit(corpus, tmp_path):
    plain, rows = spacy_train(corpus, tmp_path / "plain", streamed=False)
    streamed, streamed_rows = spacy_train(corpus, tmp_path / "streamed", streamed=True)
    assert "OFFICE" in streamed.get_pipe("hocrf").labels
    assert streamed.get_pipe("hocrf").to_bytes() == plain.get_pipe("hocrf").to_bytes()
    assert [row[3:] for row in streamed_rows] == [row[3:] for row in rows]  # the scores


def test_the_config_of_a_streamed_training_can_be_used_again(corpus, tmp_path):
    trained, _ = spacy_train(corpus, tmp_path / "first", streamed=True)
    saved = tmp_path / "first" / "model-last"
    loaded = spacy.load(saved)
    assert loaded.get_pipe("hocrf").to_bytes() == trained.get_pipe("hocrf").to_bytes()
    again = init_nlp(load_config(saved / "config.cfg", interpolate=False))
    train(again, stdout=io.StringIO(), stderr=io.StringIO())
    assert again.get_pipe("hocrf").to_bytes() == trained.get_pipe("hocrf").to_bytes()


@pytest.mark.parametrize("settings", [None, joint()], ids=["local", "joint"])
def test_initialize_reads_the_corpus_instead_of_the_examples_that_it_is_given(corpus, settings):
    nlp = untrained(joint=settings)
    reader = Corpus(corpus)
    some = list(reader(nlp))[:3]
    nlp.get_pipe("hocrf").initialize(lambda: some, nlp=nlp, corpus=reader)
    assert nlp.get_pipe("hocrf").labels == ("OFFICE", "PERSON", "PLACE")
