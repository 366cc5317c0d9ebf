"""Pipelines in which the component learns from the spans that another one has written."""

import io

import pytest
from small_corpus import examples, found, learn_from, objective_at_optimum
from spacy.tokens import Span, SpanGroup
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_model, load_model_from_config, registry
from thinc.api import Config

CONFIG = """
[nlp]
lang = "xx"
pipeline = ["ruler", "hocrf"]

[components]

[components.ruler]
factory = "span_ruler"
spans_key = "ruler"

[components.hocrf]
factory = "hocrf"

[components.hocrf.model]
@architectures = "spacy-hocrf.HighOrderCRF.v1"
order = 1

[components.hocrf.model.features]
@misc = "spacy-hocrf.Features.v1"

[components.hocrf.model.features.*]

[components.hocrf.model.features.*.length]
@misc = "spacy-hocrf.Segment.v1"
what = ["LENGTH"]

[components.hocrf.model.features.*.labels]
@misc = "spacy-hocrf.Transition.v1"

[components.hocrf.model.features.*.spans]
@misc = "spacy-hocrf.Spans.v1"
source = "spans.ruler"

[components.hocrf.trainer]
@misc = "spacy-hocrf.LBFGS.v1"
sigma = 10.0
threads = 1

[components.hocrf.decoder]
@misc = "spacy-hocrf.Viterbi.v1"

[initialize]

[initialize.components]

[initialize.components.ruler]
patterns = [{"label": "WHO", "pattern": "Ada Lovelace"}, {"label": "WHERE", "pattern": "Paris"}]

[training]
annotating_components = ["ruler"]
max_steps = 60
eval_frequency = 20
patience = 0

[corpora]

[corpora.train]
@readers = "test.spans_of_others.v1"

[corpora.dev]
@readers = "test.spans_of_others.v1"
"""
NAMES = {"Ada Lovelace": "PERSON", "Paris": "PLACE"}
TEXTS = (
    "Ada Lovelace slept .",
    "In Paris it rains .",
    "Nobody but Ada Lovelace likes Paris",
    "Paris was where Ada Lovelace slept",
    "It rains .",
    "Nobody slept in Rome .",
)
ROWS = [
    (
        text,
        [
            (text.index(name), text.index(name) + len(name), label)
            for name, label in NAMES.items()
            if name in text
        ],
    )
    for text in TEXTS
]


@pytest.fixture(scope="module", autouse=True)
def reader():
    @registry.readers("test.spans_of_others.v1")
    def read():
        return lambda nlp: iter(examples(nlp, ROWS))


def config(*removed, **spans):
    made = Config().from_str(CONFIG, interpolate=False)
    made["components"]["hocrf"]["model"]["features"]["*"]["spans"].update(spans)
    for name in removed:
        made["training"][name] = []
    return made


def ruled(doc, scores=None, key="ruler"):
    """Writes what the ruler would find, with these scores for its labels."""
    groups = {"Ada": "WHO", "Paris": "WHERE"}
    spans = [
        Span(doc, token.i, token.i + 1 + (token.text == "Ada"), label=groups[token.text])
        for token in doc
        if token.text in groups
    ]
    attrs = {"scores": [scores[span.label_] for span in spans]} if scores else {}
    doc.spans[key] = SpanGroup(doc, name=key, spans=spans, attrs=attrs)
    return doc


def written(rows, nlp, **how):
    made = examples(nlp, rows)
    for example in made:
        ruled(example.predicted, **how)
    return made


def alone(**spans):
    """A pipeline of the component alone, not initialized."""
    made = config("annotating_components", **spans)
    made["nlp"]["pipeline"] = ["hocrf"]
    del made["components"]["ruler"], made["initialize"]
    return load_model_from_config(made, auto_fill=True)


def spacy_train(made, folder):
    """What `spacy train` makes of a config, loaded again."""
    filled = load_model_from_config(made, auto_fill=True).config.to_str()
    stream = io.StringIO()
    nlp = init_nlp(Config().from_str(filled, interpolate=False))
    train(nlp, folder, stdout=stream, stderr=stream)
    return load_model(folder / "model-last")


@pytest.mark.slow
def test_spacy_train_learns_from_a_component_that_annotates(tmp_path):
    nlp = spacy_train(config(), tmp_path)
    # the words themselves are not observed
    assert found(nlp("Nobody knows Ada Lovelace in Paris .")) == [(2, 4, "PERSON"), (5, 6, "PLACE")]
    assert found(nlp("Nobody knows Emmy in London .")) == []
    observed = observations(nlp)
    assert {"SPANS.ruler:MATCH=WHO", "start:SPANS.ruler:START=WHERE"} <= observed
    assert {"SPANS.ruler:TOKENS=WHO|first", "SPANS.ruler:TOKENS=WHO|last"} <= observed
    with nlp.select_pipes(disable="ruler"):
        assert found(nlp("Nobody knows Ada Lovelace in Paris .")) == []


def observations(nlp):
    structure = nlp.get_pipe("hocrf").structure
    names, strings = structure.scheme.names, nlp.vocab.strings
    return {structure.index.describe(f, strings, names)[0] for f in range(len(structure.index))}


def test_spans_that_annotate_and_spans_that_are_there_are_learnt_alike():
    annotated = load_model_from_config(config("annotating_components"), auto_fill=True)
    data = examples(annotated, ROWS)
    optimizer = annotated.initialize(lambda: data)
    for _ in range(60):
        annotated.update(data, sgd=optimizer, exclude=["ruler"], annotates=["ruler"])
    there = alone()
    data = written(ROWS, there)
    learn_from(there, data)
    first, second = objective_at_optimum(annotated), objective_at_optimum(there)
    assert first == pytest.approx(second, rel=1e-5)
    assert observations(annotated) == observations(there)


@pytest.mark.slow
@pytest.mark.parametrize("scores, which", [(["bins"], "|≥0.9"), (["value"], "|score")])
def test_scores_decide(scores, which, tmp_path):
    nlp = alone(what=["MATCH"], scores=scores, bins=[0.5, 0.9])
    sure, unsure = ({"WHO": p, "WHERE": p} for p in (0.95, 0.1))
    data = written(ROWS, nlp, scores=sure)
    for example in written(ROWS, nlp, scores=unsure):  # half of the spans are none
        bare = ruled(nlp.make_doc(example.text), scores=unsure)
        data.append(Example.from_dict(bare, {"entities": []}))
    learn_from(nlp, data)
    nlp.to_disk(tmp_path / "model")
    for pipeline in (nlp, load_model(tmp_path / "model")):
        for given, expected in ((sure, [(0, 2, "PERSON")]), (unsure, [])):
            doc = ruled(pipeline.make_doc("Ada Lovelace slept"), scores=given)
            assert found(pipeline(doc)) == expected
    assert any(which in name for name in observations(nlp))


def test_a_group_that_is_missing_in_some_docs_has_no_spans_there():
    nlp = alone()
    data = [*examples(nlp, ROWS[-2:]), *written(ROWS[:-2], nlp)]
    learn_from(nlp, data)
    assert found(nlp("Ada Lovelace slept")) == []
    assert found(nlp(ruled(nlp.make_doc("Ada Lovelace slept")))) == [(0, 2, "PERSON")]


def test_a_group_that_is_missing_everywhere_is_refused_after_an_epoch():
    nlp = alone()
    data = examples(nlp, ROWS)
    optimizer = nlp.initialize(lambda: data)
    nlp.update(data[:-1], sgd=optimizer)
    expected = rf"^\[H182\] None of the {len(ROWS)} .*'ruler'.*annotating_components"
    with pytest.raises(ValueError, match=expected):
        nlp.update(data[-1:], sgd=optimizer)
    nlp = alone()
    data = examples(nlp, ROWS)
    optimizer = nlp.initialize(lambda: data)
    nlp.update(data[:-1], sgd=optimizer)
    ruled(data[-1].predicted)
    with pytest.warns(UserWarning, match=r"^\[W013\]"):  # there, but no span in it
        nlp.update(data[-1:], sgd=optimizer)


def test_steps_of_the_loop_need_the_group_from_the_start():
    made = config("annotating_components")
    made["components"]["hocrf"]["trainer"] = {"@misc": "spacy-hocrf.SGD.v1"}
    nlp = load_model_from_config(made, auto_fill=True)
    with pytest.raises(ValueError, match=r"^\[H182\].*'ruler'"):
        nlp.initialize(lambda: examples(nlp, ROWS))
    nlp.initialize(lambda: written(ROWS, nlp))


def test_scores_that_are_missing_are_named_in_training_and_prediction():
    nlp = alone(scores=["bins"])
    data = written(ROWS, nlp)
    with pytest.raises(ValueError, match=r"^\[H181\].*'ruler'.*features"):
        nlp.initialize(lambda: data)
    data = written(ROWS, nlp, scores={"WHO": 0.5, "WHERE": 1.0})
    nlp.initialize(lambda: data)
    nlp.update(data)
    with pytest.raises(ValueError, match=r"^\[H181\].*'Ada slept'"):
        nlp(ruled(nlp.make_doc("Ada slept")))


@pytest.mark.parametrize(
    "factory, source, named",
    [
        ("hocrf", "ents", "ENT_IOB"),
        ("hocrf", "spans.hocrf", "spans:hocrf"),
        ("hocrf_spans", "spans.sc", "spans:sc"),
    ],
)
def test_what_the_component_writes_is_not_read(factory, source, named):
    made = config("annotating_components", source=source)
    made["components"]["hocrf"]["factory"] = factory
    nlp = load_model_from_config(made, auto_fill=True)
    with pytest.raises(ValueError, match=rf"^\[H051\].* {named},.*features"):
        nlp.initialize(lambda: examples(nlp, ROWS))


@pytest.mark.slow
def test_entities_of_an_entity_ruler_help_to_find_spans(tmp_path):
    made = config(source="ents")
    made["components"]["ruler"] = {"factory": "entity_ruler"}
    made["components"]["hocrf"]["factory"] = "hocrf_spans"
    nlp = spacy_train(made, tmp_path)
    doc = nlp("Nobody knows Ada Lovelace in Paris .")
    assert [(span.text, span.label_) for span in doc.spans["sc"]] == [
        ("Ada Lovelace", "PERSON"),
        ("Paris", "PLACE"),
    ]
    assert "ENTS:MATCH=WHO" in observations(nlp)
