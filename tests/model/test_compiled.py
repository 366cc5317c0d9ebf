"""Potentials and gradient against a scorer that walks over segments, events and features one by
one.
"""

from dataclasses import fields, replace

import numpy as np
import oracle
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from random_index import observed
from spacy.tokens import Doc, Span

from spacy_hocrf.features.config import (
    make_char_ngrams,
    make_conjunction,
    make_real,
    make_segment,
    make_token,
    make_transition,
)
from spacy_hocrf.features.index import FeatureIndex
from spacy_hocrf.features.spans import make_spans
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.model.compiled import CompiledBatch
from spacy_hocrf.model.histories import Histories
from spacy_hocrf.model.placement import CompiledIndex
from spacy_hocrf.types import END, INNER, START, TOKEN, Expectations, Segment

PATTERNS = ((0,), (1,), (0, 1), (1, 0), (0, 0), (0, 1, 0))
TEMPLATES = [
    *make_token(["ORTH"], [-1, 0]),
    *make_token(["ORTH"], [1], parts=["inner"]),
    *make_token(["ORTH"], [0], parts=["inner"], order=1),
    *make_conjunction(["ORTH[0]", "ORTH[1]"], parts=["start"], order=2),
    *make_token(["ORTH"], [0], parts=["end"], order=1),
    *make_char_ngrams("ORTH", prefix=[1], order=1),
    *make_segment(["LENGTH", "FIRST", "LAST", "TEXT"], ["ORTH"], bins=[1, 2, 4], longest=2),
    *make_segment(["LENGTH", "TEXT"], ["ORTH"], bins=[1, 3], longest=2, order=1),
    *make_spans("spans.ruler", ["MATCH", "TOKENS"]),
    *make_spans("spans.scored", ["MATCH", "OVERLAP", "TOKENS"], ["value"]),
    *make_spans("spans.scored", ["MATCH", "END"], ["value"], order=1),
    *make_real("tensor", [0, 1]),
    *make_real("tensor", [0], parts=["inner"], order=1),
    *make_transition(0, copies=2),
    *make_transition(1),
    *make_transition(2),
]
VOCAB = spacy.blank("xx").vocab
PARTS = [field.name for field in fields(Expectations) if field.name != "log_partition"]


def batch_of(texts):
    docs = [Doc(VOCAB, words=text.split()) for text in texts]
    for doc in docs:
        doc.tensor = (0.5 + np.arange(2.0 * len(doc), dtype=np.float32)).reshape(-1, 2) / 4
        doc.spans["ruler"] = [Span(doc, 0, 2, label="R")] if len(doc) > 1 else []
        doc.spans["scored"] = [Span(doc, 0, 2, label="S")] if len(doc) > 1 else []
        doc.spans["scored"].attrs["scores"] = [0.75] * len(doc.spans["scored"])
    return TokenBatch(docs, learn=True)


def compiled(texts, learn_from, *, templates=TEMPLATES, one_token=None):
    """An index learnt from the segmentations of the texts, and the texts ready for scoring."""
    batch = batch_of(texts)
    index = FeatureIndex(PATTERNS, templates)
    index.learn(iter([(batch, Histories(PATTERNS).gold(learn_from, batch.offsets))]))
    allowed = np.full((len(batch), 2), 7, dtype=np.uint8)
    return (
        index,
        batch,
        CompiledBatch(CompiledIndex(index), index.observe(batch), allowed, one_token),
    )


def firing(index, batch, segmentations):
    """[F] sum of the values with which every feature fires, by the definitions of templates and
    parts.
    """
    feature = {}
    for f in range(len(index)):
        values = tuple(map(int, index.table.rows[index.feature_observation[f], 1:]))
        row = (int(index.feature_template[f]), *values)
        feature[row, index.patterns[index.feature_pattern[f]]] = f
    counts = np.zeros(len(index))
    for number, template in enumerate(index.templates):
        events = template.events(batch)
        for first, segments in zip(batch.offsets, segmentations):
            for k, (start, end, _) in enumerate(segments):
                if k < template.order:
                    continue
                history = tuple(label for _, _, label in segments[k - template.order : k + 1])
                for values, weight in observed(template, events, first, start, end):
                    row = (number, *values, *[0] * (index.table.width - len(values)))
                    if (row, history) in feature:
                        counts[feature[row, history]] += weight
    return counts


@st.composite
def corpora(draw):
    """Texts, two segmentations of each, a seed, and which labels have segments of one token only."""
    texts = [" ".join(draw(st.text("xyz", max_size=6))) for _ in range(draw(st.integers(0, 3)))]
    one_token = np.array(draw(st.sampled_from([(False, False), (True, False), (True, True)])))
    segmentations = [
        [segmentation(draw, len(text.split()), one_token) for text in texts] for _ in range(2)
    ]
    return texts, segmentations, draw(st.integers(0, 1000)), one_token


def segmentation(draw, length, one_token):
    segments, at = [], 0
    while at < length:
        label = draw(st.integers(0, 1))
        end = at + 1 if one_token[label] else draw(st.integers(at + 1, length))
        segments.append(Segment(at, end, label))
        at = end
    return segments


def gradient_of(batch, expected, scale=1.0):
    """A'·expected, [F]."""
    counts = batch.compiled.nothing()
    batch.add_counts_into(expected, scale, counts)
    return batch.compiled.collect(counts)


def one(potentials, sequence):
    """The potentials of one sequence, as the oracle takes them."""
    a, b = potentials.offsets[sequence], potentials.offsets[sequence + 1]
    rows = slice(potentials.row_offsets[a], potentials.row_offsets[b])
    spans = (potentials.span_start >= a) & (potentials.span_start < b)
    dense = {
        name: getattr(potentials, name) for name in ("start", "end", "token", "inner", "allowed")
    }
    dense = {name: array if array is None else array[a:b] for name, array in dense.items()}
    return replace(
        potentials,
        offsets=np.array([0, b - a]),
        row_offsets=potentials.row_offsets[a : b + 1] - rows.start,
        **dense,
        **{
            name: getattr(potentials, name)[rows]
            for name in ("row_part", "row_pattern", "row_score")
        },
        **{name: getattr(potentials, name)[spans] - a for name in ("span_start", "span_end")},
        **{name: getattr(potentials, name)[spans] for name in ("span_pattern", "span_score")},
    )


@given(corpora())
def test_a_segmentations_score_is_the_sum_of_the_weights_of_its_features(corpus):
    texts, (known, other), seed, one_token = corpus
    index, batch, compiled_batch = compiled(texts, known, one_token=one_token)
    weights = np.random.default_rng(seed).normal(size=len(index))
    potentials = compiled_batch.potentials(weights)
    for segmentations in (known, other):
        found = sum(
            oracle.score(one(potentials, i), PATTERNS, segments)
            for i, segments in enumerate(segmentations)
        )
        assert_allclose(found, weights @ firing(index, batch, segmentations), rtol=1e-9, atol=1e-9)


@given(corpora())
def test_one_sequence_of_a_batch_is_a_batch_of_its_own(corpus):
    texts, (known, other), seed, one_token = corpus
    index, batch, compiled_batch = compiled(texts, known, one_token=one_token)
    weights = np.random.default_rng(seed).normal(size=len(index))
    together = compiled_batch.potentials(weights)
    counts = compiled_batch.compiled.nothing()
    for i, segments in enumerate(other):
        single = compiled_batch.only(i)
        potentials, expected = single.potentials(weights), one(together, i)
        for field in fields(potentials):
            assert_array_equal(
                getattr(potentials, field.name), getattr(expected, field.name), err_msg=field.name
            )
        gold = Histories(PATTERNS).gold([segments], single.offsets)
        single.add_counts_into(single.gold_counts(gold), 1.0, counts)
    assert_allclose(
        compiled_batch.compiled.collect(counts), firing(index, batch, other), rtol=1e-6, atol=1e-9
    )


@given(corpora())
def test_a_few_counts_are_added_to_placed_weights_as_if_all_were_placed_anew(corpus):
    texts, (known, other), seed, one_token = corpus
    index, batch, compiled_batch = compiled(texts, known, one_token=one_token)
    arrangement, weights = (
        compiled_batch.compiled,
        np.random.default_rng(seed).normal(size=len(index)),
    )
    placed, counts = arrangement.place_weights(weights), arrangement.nothing()
    # these are looked up elsewhere
    read = np.delete(arrangement.place, [*arrangement.const_feature, *arrangement.length_feature])
    for segmentations, scale in ((known, 1.0), (other, -1.0), (known, 0.5)):
        gold = compiled_batch.gold_counts(Histories(PATTERNS).gold(segmentations, batch.offsets))
        compiled_batch.add_counts_into(gold, scale, counts)
        features, amounts = arrangement.take(counts)
        arrangement.add_into(placed, features, amounts)
        assert len(set(features.tolist())) == len(features)
        weights[features] += amounts
        assert not counts.values.any() and not counts.const.any() and not counts.length.any()
        anew = arrangement.place_weights(weights)
        assert_allclose(placed.values[read], anew.values[read], rtol=1e-12, atol=1e-12)
        assert_allclose(placed.const, anew.const, atol=1e-9)
        assert_allclose(placed.length, anew.length, atol=1e-9)
    added = 1.5 * firing(index, batch, known) - firing(index, batch, other)
    assert_allclose(
        weights, np.random.default_rng(seed).normal(size=len(index)) + added, rtol=1e-6, atol=1e-6
    )


@given(corpora())
def test_gold_counts_are_how_often_features_fire(corpus):
    texts, (known, other), _, one_token = corpus
    index, batch, compiled_batch = compiled(texts, known, one_token=one_token)
    potentials = compiled_batch.potentials(np.zeros(len(index)))
    for segmentations in (known, other):
        counts = compiled_batch.gold_counts(Histories(PATTERNS).gold(segmentations, batch.offsets))
        assert_allclose(
            gradient_of(compiled_batch, counts),
            firing(index, batch, segmentations),
            rtol=1e-6,
            atol=1e-9,
        )
        for i, segments in enumerate(segmentations):
            single = oracle.firing(one(potentials, i), PATTERNS, segments)
            a, b = batch.offsets[i : i + 2]
            for name in ("start", "end", "token", "inner"):
                if getattr(counts, name) is not None:
                    assert_allclose(getattr(counts, name)[a:b], single[name])
            rows = slice(potentials.row_offsets[a], potentials.row_offsets[b])
            assert_array_equal(counts.row[rows], single["row"])
    assert_allclose(index.feature_count, np.round(index.feature_count))


@given(corpora())
def test_gold_counts_are_multiplied_by_the_weights_of_sequences(corpus):
    texts, (_, other), seed, one_token = corpus
    _, batch, compiled_batch = compiled(texts, other, one_token=one_token)
    weights = np.random.default_rng(seed).choice([0.3, 1.0, 2.5], len(texts))
    gold = Histories(PATTERNS).gold(other, batch.offsets)
    counts = compiled_batch.compiled.nothing()
    for i, (segments, weight) in enumerate(zip(other, weights.tolist(), strict=True)):
        single = compiled_batch.only(i)
        alone = single.gold_counts(Histories(PATTERNS).gold([segments], single.offsets))
        single.add_counts_into(alone, weight, counts)
    gradient = gradient_of(compiled_batch, compiled_batch.gold_counts(gold, weights))
    assert_allclose(gradient, compiled_batch.compiled.collect(counts), rtol=1e-12, atol=1e-12)


@given(corpora(), st.sampled_from([1.0, -2.5]))
def test_the_gradient_is_the_transpose_of_the_potentials(corpus, scale):
    """<A w, c> = <w, A' c> for random w and c."""
    texts, (known, _), seed, one_token = corpus
    rng = np.random.default_rng(seed)
    index, _, compiled_batch = compiled(texts, known, one_token=one_token)
    weights = rng.normal(size=len(index))
    potentials = compiled_batch.potentials(weights)
    scores = {"row": "row_score", "length": "length_score", "span": "span_score"}
    scores = {part: getattr(potentials, scores.get(part, part)) for part in PARTS}
    counts = {
        part: None if array is None else rng.normal(size=array.shape)
        for part, array in scores.items()
    }
    expected = Expectations(log_partition=np.zeros(len(texts)), **counts)
    forward = scale * sum(
        float((scores[part] * counts[part]).sum()) for part in PARTS if scores[part] is not None
    )
    assert_allclose(
        weights @ gradient_of(compiled_batch, expected, scale), forward, rtol=1e-9, atol=1e-8
    )


@given(corpora())
def test_placed_weights_are_the_weights(corpus):
    texts, (known, _), seed, one_token = corpus
    index, _, compiled_batch = compiled(texts, known, one_token=one_token)
    weights = np.random.default_rng(seed).normal(size=len(index))
    plain, placed = (
        compiled_batch.potentials(w)
        for w in (weights, compiled_batch.compiled.place_weights(weights))
    )
    for field in fields(plain):
        assert_array_equal(getattr(plain, field.name), getattr(placed, field.name))


def test_counts_are_added_to_those_of_other_batches():
    segmentations = [[Segment(0, 1, 0), Segment(1, 4, 1)], [Segment(0, 1, 1)]]
    _index, batch, compiled_batch = compiled(["x y z x", "y"], segmentations)
    gold = compiled_batch.gold_counts(Histories(PATTERNS).gold(segmentations, batch.offsets))
    once, twice = compiled_batch.compiled.nothing(), compiled_batch.compiled.nothing()
    compiled_batch.add_counts_into(gold, 3.0, once)
    for scale in (1.0, 2.0):
        compiled_batch.add_counts_into(gold, scale, twice)
    for name in ("values", "const", "length"):
        assert_allclose(getattr(once, name), getattr(twice, name), rtol=1e-12)
        assert getattr(once, name).any(), f"{name} is not tested"


def test_where_segments_have_one_token_everything_is_seen_at_the_token():
    segmentations = [[Segment(0, 1, 0), Segment(1, 4, 1)]]
    index, batch, apart = compiled(["x y z x"], segmentations)
    folded = CompiledBatch(
        apart.compiled, index.observe(batch), apart.allowed, np.array([True, True])
    )
    weights = np.random.default_rng(0).normal(size=len(index))
    before, after = apart.potentials(weights), folded.potentials(weights)
    assert (after.start, after.end, after.inner) == (None, None, None)
    here = before.token + sum(part for part in (before.start, before.end) if part is not None)
    assert_allclose(after.token, here, rtol=1e-12)
    assert INNER in before.row_part and END in before.row_part and TOKEN in before.row_part
    assert set(after.row_part) == {START}
    assert len(after.row_part) == (before.row_part != INNER).sum()


def test_spans_may_have_values():
    templates = make_segment(["TEXT"], ["ORTH"], longest=2)
    index, batch, plain = compiled(
        ["x y z", "x y"],
        [[Segment(0, 2, 0), Segment(2, 3, 1)], [Segment(0, 2, 1)]],
        templates=templates,
    )
    observations = index.observe(batch)
    assert observations.spans.start.tolist() == [0, 2, 3]  # "x y", seen with two labels; "z"; "x y"
    spans = observations.spans._replace(values=np.array([2.0, 3.0, 0.5], dtype=np.float32))
    valued = CompiledBatch(plain.compiled, replace(observations, spans=spans), plain.allowed)
    weights = np.array([1.0, 10.0, 100.0])
    assert plain.potentials(weights).span_score.tolist() == [10.0, 100.0, 1.0, 10.0, 100.0]
    assert valued.potentials(weights).span_score.tolist() == [20.0, 200.0, 3.0, 5.0, 50.0]
    counts = valued.compiled.nothing()
    ones = {
        "span": np.ones(5),
        "const": np.zeros(len(PATTERNS)),
        "length": np.zeros((0, 1)),
        "row": np.zeros(0),
    }
    nothing = dict.fromkeys(("log_partition", "start", "end", "token", "inner"))
    valued.add_counts_into(Expectations(**ones, **nothing), 1.0, counts)
    assert valued.compiled.collect(counts).tolist() == [3.0, 2.5, 2.5]


def test_parts_without_observations_have_no_scores():
    index, _, batch = compiled(
        ["x y z x"], [[Segment(0, 4, 0)]], templates=make_token(["ORTH"], [0], parts=["end"])
    )
    potentials = batch.potentials(np.ones(len(index)))
    assert potentials.start is None and potentials.inner is None
    assert potentials.end.shape == potentials.token.shape == (4, 2)
    assert not potentials.token.any()


@pytest.mark.parametrize("one_token", [None, [True, True]])
def test_a_batch_that_is_scored_once_is_sorted_when_it_has_to_be(one_token):
    texts, learn_from = ["x y z x", "y"], [[Segment(0, 1, 0), Segment(1, 4, 1)], [Segment(0, 1, 1)]]
    templates = [*make_token(["ORTH"], [-1, 0]), *make_token(["ORTH"], [1], parts=["inner"])]
    folded = None if one_token is None else np.array(one_token)
    index, batch, often = compiled(texts, learn_from, templates=templates, one_token=folded)
    weights = np.random.default_rng(0).normal(size=len(index))
    known = often.compiled, index.observe(batch), often.allowed, folded
    once, cut = (CompiledBatch(*known, once=True) for _ in range(2))
    expected, again = often.potentials(weights), once.potentials(weights)
    for name in ("start", "end", "token", "inner"):
        assert_array_equal(getattr(again, name), getattr(expected, name))
    assert_array_equal(cut.only(0).potentials(weights).token, expected.token[:4])
    expectations = Expectations(
        log_partition=np.zeros(2),
        const=np.zeros(len(PATTERNS)),
        row=np.zeros(0),
        length=np.zeros((0, 1)),
        span=np.zeros(0),
        **{
            name: None if getattr(expected, name) is None else np.ones((5, 2))
            for name in ("start", "end", "token", "inner")
        },
    )
    counts = [each.compiled.nothing() for each in (often, once)]
    for each, some in zip((often, once), counts):
        each.add_counts_into(expectations, 2.0, some)
    assert_array_equal(*(each.values for each in counts))
    assert counts[0].values.any() and len(once.cells) == len(often.cells) > 0
    assert_array_equal(once.potentials(weights).token, expected.token)


def test_values_are_kept_only_where_they_are_not_1():
    segmentations = [[Segment(0, 1, 0), Segment(1, 3, 1)]]
    templates = [
        *make_token(["ORTH"], [0], ["tokens"]),
        *make_token(["ORTH"], [0], ["tokens"], order=1),
        *make_segment(["TEXT"], ["ORTH"], longest=2),
    ]
    _index, _, batch = compiled(["x y z"], segmentations, templates=templates)
    ((parts, cells),) = batch.cells
    assert (parts, cells.row_value, cells.cell_value) == ((TOKEN,), None, None)
    assert (batch.row_value, batch.span_value) == (None, None)
    _index, _, batch = compiled(
        ["x y z"],
        segmentations,
        templates=[*make_real("tensor", [0]), *make_real("tensor", [0], order=1)],
    )
    ((_, cells),) = batch.cells
    assert cells.row_value is not None and batch.row_value is not None


@pytest.mark.parametrize("length, fires", [(1, True), (3, True), (4, False), (5, False)])
def test_a_bounded_bin_ends_although_no_longer_segment_was_seen(length, fires):
    """Lengths 1 to 3 are one bin; a segment of 4 tokens is in the next, which has no feature."""
    templates = make_segment(["LENGTH"], bins=[1, 4])
    _index, _, batch = compiled(
        ["x y z x y"], [[Segment(0, 2, 0), Segment(2, 5, 0)]], templates=templates
    )
    potentials = batch.potentials(np.ones(1))
    rest = [Segment(length, 5, 1)] if length < 5 else []
    assert oracle.score(potentials, PATTERNS, [Segment(0, length, 0), *rest]) == float(fires)


def test_a_model_without_features_scores_nothing():
    index, _, batch = compiled(["x y"], [[]], templates=make_token(["ORTH"]))
    assert len(index) == 0
    potentials = batch.potentials(np.zeros(0))
    assert potentials.length_score.shape == (0, 1)
    assert not potentials.token.any()
    gold = batch.gold_counts(Histories(PATTERNS).gold([[Segment(0, 2, 0)]], batch.offsets))
    assert gradient_of(batch, gold).shape == (0,)
