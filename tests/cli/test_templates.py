"""Templates of CRF++ and Wapiti as blocks of a config: the component observes what they observe."""

import math
from functools import partial

import commands
import pytest
import spacy
from labelled_sequences import draw
from spacy.tokens import Doc, Token
from spacy.training import Example
from thinc.api import Config

from spacy_hocrf.cli.templates import features_of_templates
from spacy_hocrf.sequences.templates import read_templates
from spacy_hocrf.sklearn import HighOrderCRF

CRFPP = "U0:%x[0,0]\nU1:%x[-1,0]/%x[0,1]\nU2:%x[1,1]\nB\n"
WAPITI = "*:%x[0,1]\nu:%x[-1,0]/%x[1,0]\nb\nu\n"
FAR = "U0:%x[-2,0]/%x[0,1]\nU1:%x[3,1]\nB\n"
REGULAR = 'u:%t[-1,0,"[ae]$"]%X[0,1]\n*:%m[1,0,"^.?.?"]\nu1:%x[@1,0]\nb\n'


run = partial(commands.run, "templates")


def sequences():
    """Columns of the tokens of some texts, and their tags."""
    items, labels = draw(5, n=25, values=False)
    texts = [[(item["word"], next(iter(item))) for item in x] for x in items]
    return [(rows, tags) for rows, tags in zip(texts, labels) if rows]


@pytest.fixture
def nlp():
    Token.set_extension("c1", default="", force=True)
    yield spacy.blank("xx")
    Token.remove_extension("c1")


def example(nlp, rows, tags):
    words = [word for word, _ in rows]
    predicted = Doc(nlp.vocab, words=words)
    for token, (_, value) in zip(predicted, rows):
        token._.c1 = value
    return Example(predicted, Doc(nlp.vocab, words=words, tags=tags))


@pytest.mark.parametrize(
    "toolkit, text", [("crf++", CRFPP), ("wapiti", WAPITI), ("crf++", FAR), ("wapiti", REGULAR)]
)
def test_the_component_and_the_estimator_come_to_the_same_loss(nlp, toolkit, text):
    c2, data = 0.3, sequences()
    features = features_of_templates(text, toolkit, ["ORTH", "_.c1"])
    model = {"encoding": "tags", "order": 1, "features": features}
    trainer = {
        "@misc": "spacy-hocrf.LBFGS.v1",
        "sigma": 1 / math.sqrt(2 * c2),
        "gradient_tolerance": 1e-9,
        "improvement_tolerance": 1e-13,
        "iterations": 500,
    }
    pipe = nlp.add_pipe("hocrf_tagger", config={"model": model, "trainer": trainer})
    examples = [example(nlp, rows, tags) for rows, tags in data]
    optimizer = nlp.initialize(lambda: examples)
    nlp.update(examples, sgd=optimizer)
    templates = read_templates(text, toolkit)
    X = [templates.items(rows) for rows, _ in data]
    crf = HighOrderCRF(
        c2=c2, attribute_orders=templates.attribute_orders, epsilon=1e-9, delta=1e-13
    )
    crf.fit(X, [tags for _, tags in data])
    assert pipe.run.loss == pytest.approx(crf.loss_, rel=1e-8)


def test_blocks_are_printed(tmp_path):
    path = tmp_path / "template"
    path.write_text(CRFPP)
    printed = run(path, "--columns", "LOWER, TAG", "--component", "hocrf_tagger")
    said, block = printed.split("\n", 1)
    assert said.startswith("# ") and said.endswith(
        'encoding = "bio" in [components.hocrf_tagger.model]'
    )
    assert block.startswith("[components.hocrf_tagger.model.features]\n@misc = ")
    config = Config().from_str(
        f"[components]\n\n[components.hocrf_tagger]\n\n[components.hocrf_tagger.model]\n\n{printed}"
    )
    features = config["components"]["hocrf_tagger"]["model"]["features"]
    assert features == features_of_templates(CRFPP, "crf++", ["LOWER", "TAG"])
    assert features["*"]["template_1"]["terms"] == ["LOWER[-1]", "TAG[0]"]
    assert features["*"]["template_3"] == {"@misc": "spacy-hocrf.Transition.v1", "order": 1}


def test_files_as_windows_writes_them(tmp_path):
    path, plain = tmp_path / "template", tmp_path / "plain"
    path.write_text(CRFPP.replace("\n", "\r\n"), encoding="utf-8-sig", newline="")
    plain.write_text(CRFPP)
    assert run(path) == run(plain)


def test_what_a_conjunction_cannot_be_is_an_item():
    blocks = features_of_templates("U:%x[-2,0]\nU:%x[1,1]\n", "crf++", ["ORTH", "TAG", "_.c2"])["*"]
    assert blocks["template_0"] == {
        "@misc": "spacy-hocrf.Item.v1",
        "toolkit": "crf++",
        "template": "U:%x[-2,0]",
        "columns": ["ORTH"],
    }
    assert blocks["template_1"]["@misc"] == "spacy-hocrf.Conjunction.v1"


@pytest.mark.parametrize(
    "text, options, code",
    [
        ("U:%y[0,0]\n", (), "H288"),
        ("U:%x[0,0]\n", ("--toolkit", "crfsuite"), "H278"),
        ("U:%x[0,2]\n", ("--columns", "ORTH,TAG"), "H289.*--columns.*has 2"),
        ('\nu:%t[0,0,"*"]\n', ("--toolkit", "wapiti"), "H288.*Line 2"),
        (b"U:\xff\n", (), "H291.*Save it in UTF-8"),
        ("", (), "H288"),
        ("# nothing but a comment\n\n", (), "H288"),
    ],
)
def test_what_is_no_template_is_named(tmp_path, text, options, code):
    path = tmp_path / "template"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    printed = " ".join(run(path, *options, code=1).split())
    assert all(part in printed for part in code.split(".*"))
