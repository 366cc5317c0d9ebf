"""Answers that are read off a model: against enumeration, in every encoding, and around what was
there before.
"""

from itertools import combinations

import component_oracle
import numpy as np
import oracle
import pytest
import spacy
from component_oracle import span_chances
from small_corpus import (
    MODELS,
    decoder_of,
    entity_scores,
    examples,
    found,
    like_shared,
    shared,
    untrained,
    with_entities,
)
from spacy.tokens import Doc
from thinc.api import Config

from spacy_hocrf.answers.decoders import (
    DEFAULT_COST,
    Answer,
    ExpectedAccuracy,
    ExpectedF,
    Viterbi,
    checked_answer,
)
from spacy_hocrf.engine.forward_backward import log_partition
from spacy_hocrf.types import Potentials, Segments

EXPECTED_F = {"@misc": "spacy-hocrf.ExpectedF.v1"}
TEXTS = ["Ada was born", "Nobody likes New York", "Emmy San Jose", "It", ""]


def unsure(name, seed=0, **settings):
    """A component whose weights are chance, so that all segmentations are about as probable."""
    nlp = like_shared(name, **settings)
    pipe = nlp.get_pipe("hocrf")
    weights = np.random.default_rng(seed).normal(size=pipe.model.get_param("W").shape)
    pipe.model.set_param("W", (0.5 * weights).astype(np.float32))
    return nlp, pipe


def potentials_of(pipe, doc):
    return component_oracle.potentials_of(pipe.structure, [doc], pipe.model.get_param("W"))


def chances(pipe, doc):
    return span_chances(pipe.structure, [doc], pipe.model.get_param("W"))


def disjoint(spans):
    return all(a[1] <= b[0] or b[1] <= a[0] for a, b in combinations(spans, 2))


SPANS = [name for name in MODELS if name not in ("tagger", "spans")]


@pytest.mark.slow
@pytest.mark.parametrize("cost", [0.03, 0.15, 0.4])
@pytest.mark.parametrize("name", SPANS)
def test_expected_f_is_the_best_set_of_spans_of_all(name, cost):
    nlp, pipe = unsure(name)
    some = 0
    for text in TEXTS:
        doc = nlp.make_doc(text)
        potentials = potentials_of(pipe, doc)
        expected = chances(pipe, doc) if len(doc) else {}
        answer = ExpectedF(cost=cost).answer(potentials, pipe.automaton, pipe.structure.scheme)
        assert answer.possible.tolist() == [True]
        assert answer.log_partition == pytest.approx(
            log_partition(potentials, pipe.automaton), rel=1e-12
        )
        spans = [
            (start, end, pipe.labels[label])
            for start, end, label in zip(*(column.tolist() for column in answer.spans[1:]))
        ]
        assert disjoint(spans)
        assert answer.scores.tolist() == pytest.approx([expected[s] for s in spans], abs=1e-9)
        worth = [span for span, p in expected.items() if p > cost]
        best = max(
            sum(expected[span] - cost for span in chosen)
            for n in range(len(doc) + 1)
            for chosen in combinations(worth, n)
            if disjoint(chosen)
        )
        assert sum(p - cost for p in answer.scores.tolist()) == pytest.approx(best, abs=1e-9)
        some += len(spans)
    assert some or cost > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("name", SPANS)
def test_candidates_are_all_spans_of_that_probability(name):
    nlp, pipe = unsure(name, seed=1)
    for text in TEXTS[:-1]:
        doc = nlp.make_doc(text)
        potentials, expected = potentials_of(pipe, doc), chances(pipe, doc)
        scheme = pipe.structure.scheme
        found_spans = ExpectedF().candidates(potentials, pipe.automaton, scheme, 0.02)
        rows = zip(*(column.tolist() for column in found_spans.spans[1:]))
        named = {(start, end, pipe.labels[label]) for start, end, label in rows}
        assert named == {span for span, p in expected.items() if p >= 0.02}


@pytest.mark.slow
@pytest.mark.parametrize("cost", [0.05, 0.2, 0.4])
@pytest.mark.parametrize("name", SPANS)
def test_what_white_space_makes_several_spans_is_one_candidate(name, cost):
    nlp, pipe = unsure(name, seed=2, decoder={**EXPECTED_F, "cost": cost})
    doc = nlp.make_doc(" Ada  \n likes")
    assert [token.is_space for token in doc] == [True, False, True, False]
    expected = {}
    for (start, end, label), p in chances(pipe, doc).items():
        solid = [i for i in range(start, end) if not doc[i].is_space]
        if solid:
            span = solid[0], solid[-1] + 1, label
            expected[span] = expected.get(span, 0.0) + p
    best = max(
        (sum(expected[span] - cost for span in chosen), chosen)
        for n in range(len(doc) + 1)
        for chosen in combinations(expected, n)
        if disjoint(chosen)
    )
    doc = pipe(doc)
    spans = [(ent.start, ent.end, ent.label_) for ent in doc.ents]
    assert spans == sorted(best[1])
    scores = entity_scores(doc)
    assert list(scores) == pytest.approx([expected[span] for span in spans], abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_sure_model_finds_what_viterbi_finds(name):
    if name == "tagger":
        decoder = {"@misc": "spacy-hocrf.ExpectedAccuracy.v1"}
    else:
        decoder = {**EXPECTED_F, "cost": 0.5}
    nlp, other = shared(name), like_shared(name, decoder=decoder)
    texts = [example.reference.text for example in examples(nlp)]
    assert [found(doc) for doc in other.pipe(texts)] == [found(doc) for doc in nlp.pipe(texts)]
    again = spacy.blank("xx").from_config(Config(other.config)).from_bytes(other.to_bytes())
    assert [found(doc) for doc in again.pipe(texts)] == [found(doc) for doc in nlp.pipe(texts)]


@pytest.mark.slow
def test_scores_are_shown_and_the_threshold_holds():
    nlp, pipe = unsure("CRF, bio", decoder={**EXPECTED_F, "cost": 0.03}, threshold=0.1)
    for text in TEXTS:
        doc = nlp(text)
        expected = chances(pipe, nlp.make_doc(text)) if text else {}
        scores = entity_scores(doc)
        spans = [(s.start, s.end, s.label_) for s in doc.ents]
        assert list(scores) == pytest.approx([expected[span] for span in spans], abs=1e-6)
        assert all(score >= 0.1 for score in scores)


@pytest.mark.slow
@pytest.mark.parametrize("name", SPANS)
def test_what_earlier_components_have_set_stays(name):
    nlp, pipe = unsure(name, decoder={**EXPECTED_F, "cost": 0.03})
    doc = with_entities(Doc(nlp.vocab, words="Ada likes New York a lot".split()), (1, 3, "PERSON"))
    doc = pipe(doc)
    spans = [(ent.start, ent.end, ent.label_) for ent in doc.ents]
    assert (1, 3, "PERSON") in spans and len(spans) > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", SPANS)
def test_white_space_is_at_no_end(name):
    nlp, pipe = unsure(name, decoder={**EXPECTED_F, "cost": 0.02})
    docs = [Doc(nlp.vocab, words=[" ", "New", "York", "\n", "Ada", " "]), Doc(nlp.vocab)]
    shown = [ent for doc in map(pipe, docs) for ent in doc.ents]
    assert shown
    assert not any(ent[0].is_space or ent[-1].is_space for ent in shown)


@pytest.mark.slow
def test_the_most_probable_tags():
    nlp, pipe = unsure("tagger", decoder={"@misc": "spacy-hocrf.ExpectedAccuracy.v1"})
    for text in TEXTS:
        doc = nlp.make_doc(text)
        potentials = potentials_of(pipe, doc)
        patterns, limits = pipe.automaton.patterns, pipe.structure.scheme.limits
        expected = oracle.expectations(potentials, patterns, limits, frozenset()).token
        tags = [pipe.labels[y] for y in expected.argmax(axis=1).tolist()] if len(doc) else []
        assert [token.tag_ for token in nlp(text)] == tags


@pytest.mark.slow
def test_the_most_probable_labels_that_may_follow_one_another():
    nlp, pipe = unsure("CRF, bieso", seed=3)
    differ = 0
    for text in [
        "Ada was born in",
        "Nobody likes New York",
        "Emmy San Jose of Paris",
        "Jose likes Jose",
    ]:
        potentials = potentials_of(pipe, nlp.make_doc(text))
        scheme, patterns = pipe.structure.scheme, pipe.automaton.patterns
        every = list(oracle.segmentations(potentials, scheme.limits, scheme.forbidden))
        token = oracle.expectations(potentials, patterns, scheme.limits, scheme.forbidden).token
        right = [sum(token[s.start, s.label] for s in segments) for segments in every]
        spans = ExpectedAccuracy().answer(potentials, pipe.automaton, scheme).spans
        labels = [scheme.outside] * len(token)
        for span in scheme.named(spans)[0]:
            for segment in scheme.encode_span(*span):
                labels[segment.start] = segment.label
        here = sum(token[t, y] for t, y in enumerate(labels))
        assert here == pytest.approx(max(right))
        differ += here < token.max(axis=1).sum() - 1e-6
    assert differ  # a forbidden succession was in the way


@pytest.mark.parametrize("cost", [0, 1, 1.5, -0.1, "0.3", True, float("nan"), None])
def test_a_cost_out_of_range_is_an_error(cost):
    with pytest.raises(ValueError, match=r"H150.*\[components"):
        ExpectedF(cost=cost)


@pytest.mark.parametrize("beta", [0, -1.0, float("inf"), "1", True])
def test_a_beta_out_of_range_is_an_error(beta):
    with pytest.raises(ValueError, match=r"H151.*\[components"):
        ExpectedF(beta=beta)


@pytest.mark.parametrize(
    "factory, decoder",
    [
        ("hocrf", "ExpectedAccuracy"),
        ("hocrf_spans", "ExpectedAccuracy"),
        ("hocrf_tagger", "ExpectedF"),
    ],
)
def test_a_decoder_that_cannot_read_the_model_is_an_error(factory, decoder):
    with pytest.raises(ValueError, match=rf"H152.*'{decoder}'.*'hocrf'"):
        untrained(factory, decoder={"@misc": f"spacy-hocrf.{decoder}.v1"})


def test_a_decoder_is_a_value_of_its_settings():
    assert ExpectedF() == ExpectedF(beta=1.0, cost="auto") != ExpectedF(cost=DEFAULT_COST)
    assert ExpectedF().at(0.3) == ExpectedF(cost=0.3)
    assert Viterbi() == Viterbi()


def of_two_sequences(found):
    """What a decoder of one's own returned for sequences of 3 and 2 tokens and 2 labels, checked."""
    potentials = Potentials.zero(np.array([0, 3, 5]), np.ones((5, 2), dtype=np.uint8), 2)
    return checked_answer(Viterbi(), found, potentials, 2)


def test_an_answer_may_be_of_lists_and_of_any_numbers():
    spans = Segments([0, 2, 3], [0, 2, 0], [2, 3, 1], [0, 1, 1])
    answer = of_two_sequences(Answer(spans, [1, 0, np.float32(0.5)], [True, True], [-np.inf, 2]))
    assert [column.dtype.name for column in answer.spans] == ["int64", "int32", "int32", "int32"]
    assert answer.scores.tolist() == [1.0, 0.0, 0.5] and answer.possible.tolist() == [True, True]
    assert answer.log_partition.tolist() == [-np.inf, 2.0] and answer.text_probabilities is None
    assert not len(of_two_sequences(Answer(Segments([0, 0, 0], [], [], []), None, [1, 0])).spans[1])


@pytest.mark.parametrize(
    "change, told",
    [
        ({"spans": Segments([0, 2], [0, 2], [2, 3], [0, 1])}, r"\[\(2,\).*\[3\]"),
        ({"spans": Segments([0, 1, 2], [0], [2, 3], [0, 1])}, r"extents.*\(1,\), \(2,\)"),
        ({"spans": Segments([0, 1, 2], [0.5, 0], [2, 2], [0, 1])}, "whole numbers"),
        ({"spans": Segments(0, 0, 0, 0)}, r"\[\(\), \(\)"),
        ({"spans": ((0, 2, 1),)}, "Segments"),
        ({"spans": Segments([0, 3, 2], [0, 0], [2, 2], [0, 1])}, r"offsets \[0, 3, 2\]"),
        ({"spans": Segments([0, 1, 3], [0, 0], [2, 2], [0, 1])}, "ascending ones, from 0 to 2"),
        ({"spans": Segments([0, 1, 2], [0, 0], [2, 3], [0, 1])}, r"\[0, 3\).*in sequence 1"),
        ({"spans": Segments([0, 1, 2], [-1, 0], [2, 2], [0, 1])}, r"\[-1, 2\)"),
        ({"spans": Segments([0, 1, 2], [1, 0], [1, 2], [0, 1])}, r"\[1, 1\)"),
        ({"spans": Segments([0, 2, 2], [0, 1], [2, 3], [0, 1])}, r"\[1, 3\).*without overlaps"),
        ({"spans": Segments([0, 2, 2], [2, 0], [3, 1], [0, 1])}, r"\[0, 1\).*in order"),
        ({"spans": Segments([0, 1, 2], [0, 0], [2, 2], [0, 2])}, "label 2.*labels below 2"),
        ({"spans": Segments([0, 1, 2], [0, 0], [2, 2], [-1, 0])}, "label -1"),
        ({"scores": [0.5]}, r"\(1,\), expected 2 numbers"),
        ({"scores": [[0.5, 0.5]]}, r"\(1, 2\)"),
        ({"scores": [0.5, np.nan]}, "nan at 1, expected finite numbers of at least 0"),
        ({"scores": [-0.5, 1.0]}, "-0.5 at 0"),
        ({"scores": [np.inf, 1.0]}, "inf at 0"),
        ({"scores": [10**400, 1.0]}, "object"),
        ({"scores": ["a", "b"]}, "U1"),
        ({"possible": [True]}, r"\(1,\), expected 2"),
        ({"possible": None}, "object"),
        ({"log_partition": [np.nan, 0.0]}, "nan at 0"),
        ({"text_probabilities": [-0.1, 0.0]}, "-0.1 at 0"),
    ],
)
def test_an_answer_that_is_none_is_named_with_its_decoder(change, told):
    spans = Segments([0, 1, 2], [0, 0], [2, 2], [0, 1])
    with pytest.raises(ValueError, match=f"H590.*`answer`.*'Viterbi'.*{told}"):
        of_two_sequences(Answer(spans, [0.5, 0.5], [True, True])._replace(**change))


@pytest.mark.parametrize("found", [None, [], Segments([0, 0, 0], [], [], [])])
def test_what_is_no_answer_is_named(found):
    with pytest.raises(ValueError, match=f"H590.*{type(found).__name__}.*expected Answer"):
        of_two_sequences(found)


@pytest.mark.parametrize("scores", [[1.0] * 50, np.nan, None, "half"])
def test_scores_of_a_decoder_of_ones_own_are_checked(scores):
    own = type("Own", (Viterbi,), {"scores": lambda self, *inputs: scores})()
    nlp, pipe = unsure("semi-CRF, outside tokens")
    decoder_of(pipe).configured = own
    with pytest.raises(ValueError, match=r"H590.*`scores`.*'Own'"):
        nlp("Nobody likes New York or Emmy San Jose")
