"""The span filter: logits and picks, the local loss, and its scores in the exact model."""

from itertools import pairwise
from math import ceil, exp, log

import numpy as np
import oracle
import pytest
import spacy
from numpy.testing import assert_allclose, assert_array_equal
from spacy.tokens import Doc
from spacy.util import registry
from toy_encoder import TEMPLATES, WIDTH, automaton_of, build, central, texts, toy

from spacy_hocrf.arrays import offsets_of
from spacy_hocrf.engine.forward_backward import expectations, log_partition
from spacy_hocrf.engine.zeros import Observed
from spacy_hocrf.features.config import make_segment, make_transition
from spacy_hocrf.model.architectures import begin_update, set_weights, weights_of
from spacy_hocrf.model.filtering import (
    RESOLUTION,
    AnnotatedSpans,
    SpanFilter,
    filter_fault,
    filter_layer,
)
from spacy_hocrf.model.neural import silence
from spacy_hocrf.model.output import EncoderOutput, joined, output_of
from spacy_hocrf.pipeline.likelihood import negative_log_likelihood

HIDDEN, LONGEST = 4, 3
FEATURES = [*TEMPLATES, *make_segment(["TEXT"])]  # so that features score spans, too
NAMES = ("first", "last", "width", "out", "bias")


def layer(arrays=WIDTH, seed=1, **settings):
    """A filter with random parameters in float64."""
    settings = {"width": LONGEST, "hidden": HIDDEN, "spans": 0.6, "loss": 0.7, **settings}
    made = filter_layer(SpanFilter(**settings))
    random, hidden = np.random.default_rng(seed), settings["hidden"]
    extents = ((arrays, hidden), (arrays, hidden), (settings["width"], hidden), (hidden,), (1,))
    for name, extent in zip(NAMES, extents):
        made.set_param(name, random.normal(size=extent))
    return made


def filtered(order=1, seed=1, **settings):
    """A model with a random filter, and its filter; settings of the model."""
    blocks = [*FEATURES, *(each for k in range(2, order + 1) for each in make_transition(k))]
    model = build(
        "NeuralSemiCRF",
        toy(seed=seed),
        blocks,
        LONGEST,
        order=order,
        span_filter=SpanFilter(LONGEST, 0.6, 0.7, HIDDEN),
        **settings,
    )
    mine, random = model.layers[0].layers[1], layer(seed=seed)
    for name in NAMES:
        mine.set_param(name, random.get_param(name))
    return model, mine


def annotated(docs, spans, unknown=()):
    """Of spans and unknown tokens by their places in the batch."""
    tokens = np.zeros(sum(map(len, docs)), dtype=bool)
    tokens[list(unknown)] = True
    start, end = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    return AnnotatedSpans(start, end, tokens)


def candidates(docs, arrays, made):
    """[{(start, end): (numbers, logit)}] of each Doc, one by one; positions over the batch."""
    first, last, width, out, bias = (made.get_param(name) for name in NAMES)
    found = []
    for begin, stop in pairwise(offsets_of([len(doc) for doc in docs]).tolist()):
        found.append({})
        for u in range(begin, stop):
            for v in range(u + 1, min(stop, u + len(width)) + 1):
                sums = arrays[u] @ first + arrays[v - 1] @ last + width[v - u - 1]
                numbers = np.where(sums > 0, sums, 0)
                found[-1][u, v] = numbers, float(numbers @ out + bias[0])
    return found


def best(some, tokens, share):
    """Sorted (start, end) of the best candidates of a Doc."""
    ordered = sorted(some, key=lambda span: -some[span][1])
    return sorted(ordered[: ceil(share * tokens)])


@pytest.mark.parametrize("share", [0.2, 0.6, 1.0, 100.0])
def test_the_best_candidates_of_each_text_are_picked_with_their_numbers(share):
    docs, made = texts(), layer(spans=share)
    arrays = np.random.default_rng(0).normal(size=(6, WIDTH))
    picked, loss = made.predict((docs, arrays, None))
    known = candidates(docs, arrays, made)
    expected = [span for doc, some in zip(docs, known) for span in best(some, len(doc), share)]
    assert list(zip(picked.start.tolist(), picked.end.tolist())) == expected
    everything = {span: numbers for some in known for span, (numbers, _) in some.items()}
    rows = [[*everything[span], 1.0] for span in expected]
    assert_allclose(picked.rows, rows, rtol=1e-12)
    assert loss == 0.0


def test_what_is_as_good_as_the_last_one_picked_is_picked():
    made = layer(spans=0.1)
    made.set_param("last", np.zeros((WIDTH, HIDDEN)))
    made.set_param("width", np.zeros((LONGEST, HIDDEN)))
    doc = Doc(spacy.blank("en").vocab, words=["x"] * 10)
    arrays = np.ones((10, WIDTH)) + 1e-3 * RESOLUTION * np.random.default_rng(0).random((10, 1))
    made.set_param("bias", made.get_param("bias") + 0.5 * RESOLUTION)
    assert len(made.predict(([doc], arrays, None))[0].start) == 10 + 9 + 8


def test_annotated_spans_are_picked_in_training_unless_they_are_too_long():
    docs, made = texts(), layer(spans=0.01)
    arrays = np.random.default_rng(0).normal(size=(6, WIDTH))
    known = candidates(docs, arrays, made)
    picks = [span for doc, some in zip(docs, known) for span in best(some, len(doc), 0.01)]
    gold = next(span for some in known for span in some if span not in picks)
    for spans, more in (([gold], [gold]), ([(0, 4)], []), ([], [])):
        (picked, _), _ = made((docs, arrays, annotated(docs, spans)), True)
        found = list(zip(picked.start.tolist(), picked.end.tolist()))
        assert found == sorted([*picks, *more])


def test_logits_of_any_size_have_a_local_loss():
    docs, made = texts(), layer()
    made.set_param("bias", np.array([-2000.0]))
    (_, loss), backprop = made((docs, np.zeros((6, WIDTH)), annotated(docs, [(0, 2)])), True)
    assert loss == pytest.approx(0.7 * 2000, rel=0.01)
    assert np.isfinite(backprop(np.zeros((7, HIDDEN + 1)))).all()


def test_where_nothing_is_to_be_picked_the_local_loss_alone_teaches():
    docs, made = texts(), layer(spans=0)
    arrays = np.random.default_rng(0).normal(size=(6, WIDTH))
    (picked, loss), backprop = made((docs, arrays, annotated(docs, [(0, 2)])), True)
    (_, expected), _ = layer()((docs, arrays, annotated(docs, [(0, 2)])), True)
    assert picked.rows.shape == (0, HIDDEN + 1) and loss == expected
    assert backprop(picked.rows).any() and made.get_grad("out").any()
    (picked, loss), backprop = made((docs, arrays, None), False)
    assert picked.rows.shape == (0, HIDDEN + 1) and loss == 0.0
    assert not backprop(picked.rows).any()


def test_the_local_loss_is_that_of_a_logistic_regression_of_what_is_known():
    docs, made = texts(), layer()
    arrays = np.random.default_rng(0).normal(size=(6, WIDTH))
    gold, unknown = [(1, 2), (0, 4), (4, 6)], 2  # the second one is no candidate
    (_, loss), _ = made((docs, arrays, annotated(docs, gold, [unknown])), True)
    expected = 0.0
    for (u, v), (_, logit) in (
        (s, x) for some in candidates(docs, arrays, made) for s, x in some.items()
    ):
        if not u <= unknown < v:
            p = 1 / (1 + exp(-logit))
            expected -= log(p) if (u, v) in gold else log(1 - p)
    assert loss == pytest.approx(0.7 * expected, rel=1e-12)


def whole_loss(model, docs, gold, unknown):
    """Exact and local loss, and the way back through both, of texts in which A is annotated."""
    structure = model.attrs["structure"]
    potentials, local, backprop = begin_update(model, docs, annotated(docs, gold, unknown))
    observed = potentials.allowed.copy()
    known = np.ones(len(observed), dtype=bool)
    known[list(unknown)] = False
    observed[known, 1] = 0  # A
    for start, end in gold:
        observed[start:end] = structure.scheme.span_bits(start, end, "A")
    losses, difference = negative_log_likelihood(
        potentials, Observed(observed), automaton_of(model)
    )
    return float(losses.sum()) + local, lambda: backprop(difference)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_gradient_of_both_losses_matches_central_differences(order):
    model, mine = filtered(order)
    docs, gold, unknown = texts(), [(0, 2), (4, 6)], [3]
    _, way_back = whole_loss(model, docs, gold, unknown)
    way_back()
    table = model.get_ref("tok2vec")
    for node, name in ((table, "E"), *((mine, name) for name in NAMES)):
        gradient, values = node.get_grad(name), node.get_param(name)
        assert gradient.dtype == np.float64 and gradient.any()
        for index in np.ndindex(*values.shape):
            slope = central(lambda: whole_loss(model, docs, gold, unknown)[0], (values, index))
            assert_allclose(gradient[index], slope, rtol=1e-5, atol=1e-7)


def test_the_gradient_of_the_weights_matches_central_differences():
    model, _ = filtered()
    structure, docs = model.attrs["structure"], texts()
    output = output_of(model.layers[0], docs)
    batch = structure.compile(structure.observe(docs, output), structure.allowed(docs))
    assert len(batch.picked.place) and len(batch.picked.others)
    weights, automaton = weights_of(model), automaton_of(model)
    counts = batch.compiled.nothing()
    batch.add_counts_into(expectations(batch.potentials(weights), automaton), 1.0, counts)
    gradient = batch.compiled.collect(counts)
    assert gradient[structure.size - (HIDDEN + 1) * 2 :].any()
    for f in range(len(weights)):
        slope = central(
            lambda: log_partition(batch.potentials(weights), automaton).sum(), (weights, f)
        )
        assert_allclose(gradient[f], slope, rtol=1e-5, atol=1e-8)


def span_scores(potentials):
    """{(start, end, pattern): score}, equal ones added up."""
    found = {}
    columns = potentials.span_start, potentials.span_end, potentials.span_pattern
    for *place, score in zip(*(c.tolist() for c in columns), potentials.span_score.tolist()):
        found[tuple(place)] = found.get(tuple(place), 0.0) + score
    return found


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("settings", [{}, {"max_length": 0}, {"outside": "run"}], ids=str)
@pytest.mark.parametrize("text", ["x", "xyz", "zzxyx"])
def test_picked_spans_have_their_scores_and_log_z_matches_enumeration(order, text, settings):
    model, mine = filtered(order, seed=len(text), **settings)
    structure, doc = model.attrs["structure"], Doc(spacy.blank("en").vocab, words=list(text))
    potentials = model.predict([doc])
    (array,) = toy(seed=len(text)).predict([doc])
    (some,) = candidates([doc], array, mine)
    weights = weights_of(model)
    without = weights.copy()
    without[-(HIDDEN + 1) * 2 :] = 0.0  # they are the last
    set_weights(model, without)
    expected = span_scores(model.predict([doc]))
    head = weights[-(HIDDEN + 1) * 2 :].reshape(HIDDEN + 1, 2)
    picked = best(some, len(text), 0.6)
    for start, end in picked:
        score = np.append(some[start, end][0], 1.0) @ head[:, 1]
        expected[start, end, 1] = expected.get((start, end, 1), 0.0) + score
    found = span_scores(potentials)
    assert {place for place in found if found[place]} == {p for p in expected if expected[p]}
    assert picked and all(found[p] == pytest.approx(expected[p], rel=1e-9) for p in found)
    exact = structure.patterns, structure.scheme.limits, structure.scheme.forbidden
    automaton = automaton_of(model)
    assert_allclose(
        log_partition(potentials, automaton), [oracle.log_partition(potentials, *exact)], rtol=1e-10
    )
    assert_allclose(
        expectations(potentials, automaton).span,
        oracle.expectations(potentials, *exact).span,
        atol=1e-10,
    )


def test_no_label_has_scores_of_spans_that_it_is_too_short_for():
    model = build("NeuralSemiCRF", toy(), TEMPLATES, 1, span_filter=SpanFilter(LONGEST, 9.0))
    model.layers[0].layers[1].initialize(X=(texts(), np.zeros((6, WIDTH)), None))
    potentials = model.predict(texts())
    assert len(potentials.span_start) >= 6
    assert (potentials.span_end - potentials.span_start == 1).all()
    assert (potentials.span_pattern != 0).all()  # outside


def test_one_text_of_a_batch_has_the_scores_that_it_has_alone():
    model, _ = filtered()
    structure, docs = model.attrs["structure"], texts()
    whole = structure.compile(structure.observe(docs), structure.allowed(docs))
    weights = weights_of(model)
    for number, doc in enumerate(docs):
        alone = structure.compile(structure.observe([doc]), structure.allowed([doc]))
        found, expected = (b.potentials(weights) for b in (whole.only(number), alone))
        for name in ("span_start", "span_end", "span_pattern"):
            assert_array_equal(getattr(found, name), getattr(expected, name))
        assert_allclose(found.span_score, expected.span_score, rtol=1e-12)
        counts = []
        for batch, potentials in ((whole.only(number), found), (alone, expected)):
            counts.append(batch.compiled.nothing())
            expected_counts = expectations(potentials, automaton_of(model))
            batch.add_counts_into(expected_counts, 1.0, counts[-1])
        ours, theirs = (whole.compiled.collect(each) for each in counts)
        assert_allclose(ours, theirs, atol=1e-12)


def test_outputs_are_split_by_text_and_joined_again():
    model, _ = filtered()
    docs = texts()
    output = output_of(model.layers[0], docs)
    parts = output.split(offsets_of([len(doc) for doc in docs]))
    assert [len(part.rows) for part in parts] == [4, 0, 2]
    for part, doc in zip(parts, docs):
        alone = output_of(model.layers[0], [doc])
        assert_array_equal(part.picked.start, alone.picked.start)
        assert_allclose(part.picked.rows, alone.picked.rows, rtol=1e-12)
    again = joined(parts)
    assert_array_equal(again.rows, output.rows)
    for column, expected in zip(again.picked, output.picked):
        assert_array_equal(column, expected)
    assert joined([EncoderOutput(output.rows)]).picked is None


def test_a_silent_encoder_picks_nothing():
    model, mine = filtered()
    silence(model.layers[0], WIDTH + 1)
    mine._func = None  # it is not asked
    assert output_of(model.layers[0], texts()).picked.rows.shape == (0, HIDDEN + 1)
    assert model.predict(texts()).span_score.any()  # of features


def test_without_tokens_nothing_is_picked():
    model, _ = filtered()
    assert not len(model.predict([]).span_start)
    assert not len(model.predict(texts()[1:2]).span_start)
    potentials, loss, backprop = begin_update(model, texts()[1:2], annotated(texts()[1:2], []))
    backprop(expectations(potentials, automaton_of(model)))
    assert loss == 0.0


@pytest.mark.parametrize(
    "settings",
    [
        {"width": 0},
        {"width": 2.0},
        {"width": True},
        {"width": 1001},
        {"hidden": 0},
        {"spans": -1.0},
        {"spans": float("nan")},
        {"spans": float("inf")},
        {"loss": -0.1},
        {"loss": 0.0},
        {"loss": float("nan")},
        {"loss": float("inf")},
    ],
)
def test_settings_out_of_range_are_refused(settings):
    (name,) = settings
    with pytest.raises(ValueError, match=rf"H230.*{name} = .*model.span_filter"):
        registry.misc.get("spacy-hocrf.SpanFilter.v1")(**settings)


@pytest.mark.parametrize("name", ["NeuralCRF", "NeuralTagger"])
def test_segments_of_one_token_have_no_filter(name):
    with pytest.raises(ValueError, match=r"H191.*NeuralSemiCRF"):
        build(name, toy(), span_filter=SpanFilter())


def test_what_is_no_filter_is_refused():
    with pytest.raises(ValueError, match=r"H189.*'width': 3.*SpanFilter.v1"):
        build("NeuralSemiCRF", toy(), span_filter={"width": 3})


def test_numbers_that_are_not_finite_are_refused_by_the_name_of_the_text():
    model, mine = filtered()
    mine.set_param("width", np.array([[0.0], [0.0], [np.nan]]) * np.ones(HIDDEN))
    with pytest.raises(ValueError, match=r"H231.*'x y z x'"):
        model.predict(texts())
    with pytest.raises(ValueError, match=r"H231.*'x y z x'"):
        model.begin_update(texts())


def test_arrays_of_another_width_than_in_training_are_refused():
    docs = texts()
    with pytest.raises(ValueError, match=r"H176.*4 x 4.*expected 4 x 3"):
        layer().predict((docs, np.zeros((6, WIDTH + 1)), None))


@pytest.mark.parametrize("name", NAMES)
def test_parameters_that_do_not_fit_are_found(name):
    made = layer()
    assert filter_fault(made) == ""
    for wrong in (lambda array: array[..., None], lambda array: np.full_like(array, np.inf)):
        made = layer()
        made.set_param(name, wrong(made.get_param(name)))
        assert filter_fault(made) == f"'{name}' of the span filter is damaged"
    assert filter_fault(filter_layer(SpanFilter()))


def test_what_is_picked_does_not_depend_on_the_batch():
    model, _ = filtered()
    docs = [Doc(spacy.blank("en").vocab, words=list(text)) for text in ("xyzx", "zzzz", "yx")]
    together = output_of(model.layers[0], docs).split(offsets_of([4, 4, 2]))
    for doc, part in zip(docs, together):
        alone = output_of(model.layers[0], [doc])
        assert_array_equal(part.picked.start, alone.picked.start)
        assert_array_equal(part.picked.end, alone.picked.end)
