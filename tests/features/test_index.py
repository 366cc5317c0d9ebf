"""Features: what is learnt from annotated batches, counted once more the slow way, and what an
index keeps of it.
"""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
import spacy
from numpy.testing import assert_array_equal
from random_index import observed
from spacy.strings import StringStore
from spacy.tokens import Doc, Span, Token

from spacy_hocrf.features import plan
from spacy_hocrf.features.config import (
    make_char_ngrams,
    make_conjunction,
    make_flags,
    make_position,
    make_real,
    make_segment,
    make_token,
    make_transition,
)
from spacy_hocrf.features.index import FeatureIndex
from spacy_hocrf.features.observers import planned
from spacy_hocrf.features.segments import LengthTemplate
from spacy_hocrf.features.spans import make_spans
from spacy_hocrf.features.templates import AttributeTemplate, Events
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.model.histories import Histories
from spacy_hocrf.types import CONST, SPAN, TOKEN, Segment

LABELS = ["A", "B"]
PATTERNS = ((0,), (1,), (0, 1), (1, 0), (0, 1, 0))
TEXTS = ["x y z x y", "", "z", "y y x z"]
SEGMENTATIONS = [
    [Segment(0, 2, 0), Segment(2, 3, 1), Segment(3, 5, 0)],
    [],
    [Segment(0, 1, 1)],
    [Segment(0, 1, 0), Segment(2, 4, 1)],  # nothing is known of token 1
]
TEMPLATES = [
    *make_token(["ORTH"], [-1, 0], parts=["tokens"]),
    *make_token(["ORTH"], [1], parts=["inner"], order=1),
    *make_token(["ORTH"], [0], parts=["start"], order=2),
    *make_token(["ORTH"], [0], parts=["end"], order=1),
    *make_char_ngrams("ORTH", prefix=[1], parts=["tokens"], order=1),
    *make_segment(["LENGTH", "TEXT"], ["ORTH"], bins=[1, 2], longest=2),
    *make_spans("spans.ruler", ["MATCH", "TOKENS"]),
    *make_real("tensor"),
    *make_transition(0),
    *make_transition(1),
    *make_transition(2),
]


VOCAB = spacy.blank("en").vocab


def batch_of(texts=TEXTS, *, learn=True):
    docs = [Doc(VOCAB, words=text.split()) for text in texts]
    for doc in docs:
        doc.tensor = np.arange(2.0 * len(doc), dtype=np.float32).reshape(-1, 2)
        doc.spans["ruler"] = [Span(doc, 0, end, label="R") for end in (2, 3) if end <= len(doc)]
    return TokenBatch(docs, learn=learn)


def learnt(
    batch=None,
    segmentations=SEGMENTATIONS,
    patterns=PATTERNS,
    templates=TEMPLATES,
    index=None,
    **settings,
):
    batch = batch or batch_of()
    index = index or FeatureIndex(patterns, templates)
    moved = index.learn(
        iter([(batch, Histories(index.patterns).gold(segmentations, batch.offsets))]), **settings
    )
    return index, moved


def counted(batch, segmentations, patterns, templates):
    """{(template, values, label pattern): occurrences}, segment by segment and event by event."""
    counts = Counter()
    for number, template in enumerate(templates):
        events = template.events(batch)
        for first, segments in zip(batch.offsets, segmentations):
            for k, (start, end, _) in enumerate(segments):
                stretch = [segments[k]]
                while k >= len(stretch) and segments[k - len(stretch)].end == stretch[0].start:
                    stretch.insert(0, segments[k - len(stretch)])
                history = tuple(label for _, _, label in stretch)[-1 - template.order :]
                if len(history) <= template.order or history not in patterns:
                    continue
                for values, _ in observed(template, events, first, start, end):
                    counts[number, values, history] += 1
    return counts


def features(index):
    """The same of an index."""
    rows = index.table.rows
    found = {}
    for f in range(len(index)):
        row = rows[index.feature_observation[f]]
        number = int(index.feature_template[f])
        assert number in index.observers[int(row[0])].templates
        values = tuple(map(int, row[1 : 1 + index.templates[number].width]))
        found[number, values, index.patterns[index.feature_pattern[f]]] = int(
            index.feature_count[f]
        )
    return found


def test_pairs_are_counted_as_a_slow_loop_counts_them():
    batch = batch_of()
    index, moved = learnt(batch)
    expected = counted(batch, SEGMENTATIONS, PATTERNS, TEMPLATES)
    assert {template for template, _, _ in expected} == set(range(len(TEMPLATES)))
    assert features(index) == expected
    assert len(index) == len(expected)
    assert moved.tolist() == []


@pytest.mark.parametrize("seed", range(10))
def test_random_segmentations_are_counted_as_a_slow_loop_counts_them(seed):
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(list("xyz"), rng.integers(0, 7))) for _ in range(4)]
    segmentations = []
    for text in texts:
        cuts = np.flatnonzero(np.append(rng.random(len(text.split())) < 0.6, True)) if text else [0]
        segments = [Segment(a, b, int(rng.integers(2))) for a, b in zip([0, *cuts], cuts) if a < b]
        segmentations.append([segment for segment in segments if rng.random() < 0.8])
    batch = batch_of(texts)
    index, _ = learnt(batch, segmentations)
    assert features(index) == counted(batch, segmentations, PATTERNS, TEMPLATES)


def test_features_are_in_order():
    index, _ = learnt()
    assert len(index.feature_offsets) == len(index.table) + 1
    for start, end in zip(index.feature_offsets, index.feature_offsets[1:]):
        assert_array_equal(
            index.feature_pattern[start:end], np.unique(index.feature_pattern[start:end])
        )
    assert index.n_labels == 2
    assert index.feature_order.tolist() == [len(PATTERNS[z]) - 1 for z in index.feature_pattern]


def test_rare_features_are_left_out():
    every, _ = learnt()
    index, _ = learnt(min_count=2)
    assert features(index) == {key: count for key, count in features(every).items() if count >= 2}
    assert 0 < len(index) < len(every)


def test_unseen_pairs_every_single_label_observation_with_all_labels():
    seen, every = features(learnt()[0]), features(learnt(unseen=True)[0])
    single = {(template, values) for template, values, pattern in seen if len(pattern) == 1}
    expected = {
        (template, values, (label,)): 0 for template, values in single for label in range(2)
    }
    assert every == {**expected, **seen}


def test_all_pairs_of_labels_have_a_feature_of_what_observes_nothing_else():
    patterns = (*PATTERNS, (1, 1))
    seen = features(learnt(patterns=patterns)[0])
    found = features(learnt(patterns=patterns, all_pairs=True)[0])
    numbers = [i for i, each in enumerate(TEMPLATES) if each.part == CONST and each.order == 1]
    pairs = [pattern for pattern in patterns if len(pattern) == 2]
    assert found == {**{(i, (), pair): 0 for i in numbers for pair in pairs}, **seen}
    assert len(found) > len(seen)


def test_growth_keeps_what_the_old_features_mean():
    first, second = (batch_of(texts) for texts in (TEXTS[:1], TEXTS[1:]))
    index, _ = learnt(first, SEGMENTATIONS[:1])
    before = features(index)
    names = list(before)
    _, moved = learnt(second, SEGMENTATIONS[1:], index=index)
    after = list(features(index))
    assert [after[new] for new in moved] == names
    assert Counter(features(index)) == counted(
        first, SEGMENTATIONS[:1], PATTERNS, TEMPLATES
    ) + counted(second, SEGMENTATIONS[1:], PATTERNS, TEMPLATES)
    _, again = learnt(second, SEGMENTATIONS[1:], index=index)
    assert again.tolist() == list(range(len(after)))


def test_features_that_were_kept_once_stay_when_the_minimum_rises():
    index, _ = learnt()
    size = len(index)
    learnt(batch_of(["w"]), [[Segment(0, 1, 0)]], index=index, min_count=100)
    assert len(index) == size


def test_new_labels_renumber_the_longer_patterns():
    index, _ = learnt()
    before = features(index)
    index.renumber((*PATTERNS[:2], (2,), *PATTERNS[2:]), np.array([0, 1, 3, 4, 5], dtype=np.int32))
    assert index.n_labels == 3
    assert features(index) == before


def test_carried_patterns_are_those_observed_after_the_start():
    def carried(*templates):
        return learnt(templates=list(templates))[0].carried

    assert (
        carried(
            *make_token(["ORTH"], [0], parts=["start"], order=1),
            *make_transition(2),
            *make_token(["ORTH"]),
        )
        == set()
    )
    for part in ("end", "inner", "tokens"):
        assert carried(*make_token(["ORTH"], [0], parts=[part], order=2)) == {(0, 1, 0)}
    assert carried(*make_segment(["LENGTH"], order=1)) == {(0, 1), (1, 0)}
    assert carried(*make_segment(["TEXT"], order=1)) == {(0, 1), (1, 0)}
    assert carried() == set()


def test_known_observations_are_found_again():
    batch = batch_of()
    index, _ = learnt(batch)
    unseen = batch_of(["w x", "", "x y z"], learn=False)
    observations = index.observe(unseen)
    assert observations.offsets.tolist() == [0, 2, 2, 5]
    rows, tokens = index.table.rows, observations.tokens
    found = Counter()
    assert len(tokens.offsets) == 6
    for token in range(5):
        for r in range(tokens.offsets[token], tokens.offsets[token + 1]):
            value = 1.0 if tokens.values is None else float(tokens.values[r])
            found[token, tuple(map(int, rows[tokens.ids[r]])), value] += 1
    spans = observations.spans
    assert list(zip(spans.start, spans.end)) == sorted(zip(spans.start, spans.end))
    for start, end, i in zip(spans.start, spans.end, spans.ids):
        found[int(start), int(end), tuple(map(int, rows[i]))] += 1
    expected = Counter()
    known = {tuple(map(int, row)) for row in rows}
    for number, observer in enumerate(index.observers):
        template = observer.template
        events = template.events(unseen)
        for i, token in enumerate(events.token):
            row = (number, *map(int, events.values[i]), *[0] * (index.table.width - template.width))
            if row in known and template.part == SPAN:
                expected[int(token), int(events.end[i]), row] += 1
            elif row in known:
                expected[
                    int(token), row, 1.0 if events.weight is None else float(events.weight[i])
                ] += 1
    assert found == expected
    assert len(found) > 15


@pytest.fixture
def extension():
    Token.set_extension("unit", default="", force=True)
    yield
    Token.remove_extension("unit")


def random_docs(seed, count):
    """Docs of 0 to 9 tokens, with white space, long and odd letters, and every annotation that the
    templates below read.
    """
    rng = np.random.default_rng(seed)
    docs = []
    for length in [0, 1, *rng.integers(0, 10, count)]:
        letters = rng.choice(list("aabé中🦔 \n"), (length, 12))
        words = ["".join(row[: rng.choice([1, 2, 3, 12])]) for row in letters]
        morphs = rng.choice(["Case=Nom", "Case=Nom,Gen|Number=Sing", ""], length).tolist()
        doc = Doc(
            VOCAB, words=words, morphs=morphs, lemmas=rng.choice(["", "DET", "a"], length).tolist()
        )
        for token in doc:
            token._.unit = str(rng.choice(["km", "kg"]))
        doc.tensor = rng.integers(0, 2, (length, 2)).astype(np.float32)
        doc.spans["ruler"] = [doc[0:end] for end in range(1, length, 3)]
        docs.append(doc)
    return docs


class OwnTemplate:
    """What a user may write: no `find`, other integer types, tokens in no order."""

    name, part, order, width = "OWN", TOKEN, 1, 1

    def events(self, batch):
        tokens = np.arange(len(batch), dtype=np.int32)[::-1]
        return Events(
            tokens,
            batch.column("ORTH")[tokens].reshape(-1, 1),
            np.arange(len(batch), dtype=np.float64),
        )


class EveryOther(AttributeTemplate):
    """One of ours with other events: the method `find` that it inherits would not know them."""

    def events(self, batch):
        return Events(*(part[::2] for part in super().events(batch)[:2]))


def every_kind_of_template():
    attributes = ["ORTH", "SHAPE", "IS_SPACE", "LEMMA", "MORPH.Case", "_.unit"]
    places = [(["tokens", "start"], 0), (["end"], 1), (["inner"], 2)]
    return [
        template
        for parts, order in places
        for template in [
            *make_token(attributes, [-3, -1, 0, 1, 2], parts, order),
            *make_conjunction(["ORTH[-1]", "SHAPE", "_.unit[1]"], parts, order),
            *make_conjunction(["LEMMA[2]", "IS_SPACE[-2]"], parts, order),
            *make_char_ngrams("ORTH", [1, 2, 5], [1, 3], [1, 2, 3], parts, order),
            *make_char_ngrams("LEMMA", [3], [2], [1], parts, order),
            *make_real("tensor", [0, 1], parts, order),
            *make_flags(["HAS_UPPER", "IS_DIGIT"], [-1, 0], parts, order),
            *make_position(3, parts, order),
        ]
    ] + [
        *make_spans("spans.ruler", ["MATCH", "TOKENS"]),
        *make_segment(["TEXT"]),
        OwnTemplate(),
        EveryOther((("NORM", 0),)),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_finding_directly_is_looking_up_the_events(seed, extension):
    """The same observations with the same values, in the order of the templates; within one token's
    template in any order.
    """
    templates = every_kind_of_template()
    learning, unseen = random_docs(seed, 3), random_docs(100 + seed, 6)
    segmentations = [[Segment(i, i + 1, i % 2) for i in range(len(doc))] for doc in learning]
    index, _ = learnt(TokenBatch(learning, learn=True), segmentations, templates=templates)
    steps, others = planned(index.observers)
    rank = [*(number for _, number, _ in steps.steps), *(other.number for other in others)]
    assert steps.steps and others
    for docs in ([], unseen[:1], unseen[1:2], unseen, learning):
        observations = index.observe(TokenBatch(docs))
        slow = TokenBatch(docs)
        expected = Counter()
        for number, observer in enumerate(index.observers):
            events = observer.template.events(slow)
            ids = index.table.lookup(number, np.ascontiguousarray(events.values))
            weight = np.ones(len(ids)) if events.weight is None else events.weight
            for token, i, value in zip(events.token[ids >= 0], ids[ids >= 0], weight[ids >= 0]):
                if observer.template.part != SPAN:
                    expected[int(token), number, int(i), float(value)] += 1
        found = Counter()
        rows = observations.tokens
        values = np.ones(len(rows.ids)) if rows.values is None else rows.values
        for token, (a, b) in enumerate(pairwise(rows.offsets)):
            numbers = index.table.rows[rows.ids[a:b], 0].astype(int).tolist()
            assert numbers == sorted(numbers, key=rank.index)
            for number, i, value in zip(numbers, rows.ids[a:b], values[a:b]):
                found[token, number, int(i), float(value)] += 1
        assert found == expected
    assert len(found) > 100
    assert observations.tokens.values is not None
    assert set(index.attributes) == {
        "FLAGS",
        "NORM",
        "ORTH",
        "SHAPE",
        "IS_SPACE",
        "LEMMA",
        "MORPH.Case",
        "_.unit",
    }


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_nothing_is_observed_of_empty_docs(texts):
    index, _ = learnt()
    observations = index.observe(batch_of(texts))
    assert observations.offsets.tolist() == [0] * (len(texts) + 1)
    assert len(observations.tokens.ids) == 0
    assert len(observations.spans.ids) == 0


def test_an_index_that_has_learnt_nothing_observes_nothing():
    index, _ = learnt(batch_of([]), [])
    assert len(index) == 0
    assert len(index.observe(batch_of()).tokens.ids) == 0
    assert (index.lengths(), index.constants(), index.carried) == ([], [], set())


def test_lengths_and_constants_are_features_without_an_observation():
    templates = [LengthTemplate((1, 2, 4)), *make_transition(1)]
    index, _ = learnt(templates=templates)
    lengths = {
        (low, high, index.patterns[index.feature_pattern[feature]])
        for feature, low, high in index.lengths()
    }
    assert lengths == {(1, 1, (0,)), (1, 1, (1,)), (2, 3, (0,)), (2, 3, (1,))}
    assert {index.patterns[index.feature_pattern[feature]] for feature in index.constants()} == {
        (0, 1),
        (1, 0),
    }


def test_the_last_bin_has_no_end():
    index, _ = learnt(templates=[LengthTemplate((1, 2))])
    assert {(low, high) for _, low, high in index.lengths()} == {(1, 1), (2, 0)}


def test_names_survive_a_round_trip_of_the_string_store():
    batch = batch_of()
    index, _ = learnt(batch)
    strings = StringStore().from_bytes(batch.strings.to_bytes())
    index = FeatureIndex.from_arrays(index.patterns, index.templates, index.arrays())
    names = {index.describe(feature, strings, LABELS) for feature in range(len(index))}
    assert len(names) == len(index)
    assert names >= {
        ("ORTH[0]=x", "A"),
        ("ORTH[-1]=<edge>", "B"),
        ("start:ORTH[0]@2=x", "A B A"),
        ("LENGTH=1", "B"),
        ("LENGTH=2+", "A"),
        ("TEXT.ORTH=x y", "A"),
        ("SPANS.ruler:MATCH=R", "A"),
        ("SPANS.ruler:TOKENS=R|last", "A"),
        ("tensor[0]=1", "A"),
        ("LABELS", "B"),
        ("LABELS@2", "A B A"),
    }


def test_describing_a_feature_reads_one_observation_whatever_their_number(monkeypatch):
    batch = batch_of()
    index, _ = learnt(batch)
    expected = [index.describe(f, batch.strings, LABELS) for f in range(len(index))]
    table, read = index.table, []

    class OneRow:
        def row(self, number):
            read.append(number)
            return table.row(number)

    index.table = OneRow()
    monkeypatch.setattr(FeatureIndex, "feature_observation", None)
    found = [index.describe(f, batch.strings, LABELS) for f in range(len(index))]
    assert found == expected
    assert read == np.repeat(np.arange(len(table)), np.diff(index.feature_offsets)).tolist()


def test_a_template_of_a_users_own_is_described_by_its_strings():
    class Own:
        name, part, order, width = "OWN", TOKEN, 0, 1

        def events(self, batch):
            return TEMPLATES[1].events(batch)

    batch = batch_of()
    index, _ = learnt(batch, templates=[Own()])
    assert ("OWN=x", "A") in {
        index.describe(feature, batch.strings, LABELS) for feature in range(len(index))
    }


def test_an_index_is_restored_from_its_arrays():
    index, _ = learnt()
    other = FeatureIndex.from_arrays(
        PATTERNS, TEMPLATES, {name: array.copy() for name, array in index.arrays().items()}
    )
    assert features(other) == features(index)
    assert_array_equal(other.feature_offsets, index.feature_offsets)
    _, moved = learnt(index=other)
    assert moved.tolist() == list(range(len(index)))


def damage(name, change):
    return lambda arrays: {**arrays, name: change(arrays[name])}


def wrapping(offsets):
    """Ascending for who subtracts: the differences of these int64 are all positive."""
    damaged = offsets.copy()
    damaged[1:3] = [2**62 + 2**61, -(2**63) + 1]
    return damaged


def no_template(rows):
    damaged = rows.copy()
    damaged[-1, 0] = len(TEMPLATES)  # there are fewer observers
    return damaged


def beyond_the_width(rows):
    damaged = rows.copy()
    damaged[rows[:, 0] == rows[:, 0].max(), 1] = 7  # LABELS@2 has no value
    return damaged


@pytest.mark.parametrize(
    "damaged, code",
    [
        (damage("observations", lambda rows: rows[:, :-1]), "H039.*'observations'"),
        (damage("observations", lambda rows: rows[:-1]), "H039.*'feature_offsets'"),
        (
            damage("observations", lambda rows: np.concatenate([rows[:1], rows[:1], rows[2:]])),
            "H021",
        ),
        (damage("feature_offsets", lambda offsets: offsets[:-1]), "H039.*'feature_offsets'"),
        (damage("feature_offsets", lambda offsets: offsets + 1), "H039.*'feature_offsets'"),
        (
            damage("feature_offsets", lambda offsets: offsets[::-1].copy()),
            "H039.*'feature_offsets'",
        ),
        (
            damage("feature_offsets", lambda offsets: np.append(0, offsets[:0:-1])),
            "H039.*'feature_offsets'",
        ),
        (damage("feature_pattern", lambda patterns: patterns[:-1]), "H039.*'feature_offsets'"),
        (damage("feature_pattern", lambda patterns: patterns + 1), "H039.*'feature_pattern'"),
        (damage("feature_pattern", lambda patterns: patterns - 1), "H039.*'feature_pattern'"),
        (damage("feature_count", lambda counts: counts[:-1]), "H039.*'feature_count'"),
        (damage("feature_count", lambda counts: counts - 99), "H039.*'feature_count'"),
        (damage("feature_pattern", lambda patterns: patterns[::-1]), "H039.*'feature_pattern'"),
        (damage("feature_offsets", wrapping), "H039.*'feature_offsets'"),
        (damage("observations", lambda rows: rows[::-1]), "H039.*'feature_template'"),
        (damage("feature_template", lambda templates: templates[:-1]), "H039.*'feature_template'"),
        (damage("feature_template", lambda templates: templates - 1), "H039.*'feature_template'"),
        (damage("feature_template", lambda templates: templates + 1), "H039.*'feature_template'"),
        (damage("feature_template", lambda templates: templates[::-1]), "H039.*'feature_template'"),
        (damage("observations", no_template), "H039.*'observations'"),
        (damage("observations", beyond_the_width), "H039.*'observations'"),
    ],
)
def test_damaged_arrays_are_refused(damaged, code):
    index, _ = learnt()
    with pytest.raises(ValueError, match=code):
        FeatureIndex.from_arrays(PATTERNS, TEMPLATES, damaged(index.arrays()))


@pytest.mark.parametrize("most, dtype", [(255, "uint8"), (256, "uint16"), (2**40, "uint64")])
def test_counts_of_any_size_are_kept_and_saved_as_int64(most, dtype):
    arrays = learnt()[0].arrays()
    arrays["feature_count"][0] = most
    index = FeatureIndex.from_arrays(PATTERNS, TEMPLATES, arrays)
    assert index.feature_count.dtype == dtype
    assert index.arrays()["feature_count"].dtype == np.int64
    assert_array_equal(index.arrays()["feature_count"], arrays["feature_count"])
    again = FeatureIndex.from_arrays(PATTERNS, TEMPLATES, index.arrays())
    batch = batch_of()
    again.learn(iter([(batch, Histories(PATTERNS).gold(SEGMENTATIONS, batch.offsets))]))
    more = again.feature_count.astype(np.int64) - arrays["feature_count"]
    assert_array_equal(more, learnt()[0].feature_count)


def test_counts_are_the_same_however_often_they_are_added_up(monkeypatch):
    once, _ = learnt()
    monkeypatch.setattr("spacy_hocrf.features.index.MERGED", 0)
    batches = [
        (batch_of(), Histories(PATTERNS).gold(SEGMENTATIONS, batch_of().offsets)) for _ in range(4)
    ]
    often = FeatureIndex(PATTERNS, TEMPLATES)
    often.learn(iter(batches))
    assert_array_equal(often.feature_pattern, once.feature_pattern)
    assert_array_equal(often.feature_offsets, once.feature_offsets)
    assert_array_equal(often.feature_count, 4 * once.feature_count)


def test_what_is_learnt_after_texts_were_looked_at_is_found_in_them(extension):
    def observed(index, docs):
        rows = index.observe(TokenBatch(docs)).tokens
        return rows.offsets.tolist(), rows.ids.tolist()

    first, later = random_docs(1, 3), random_docs(2, 4)
    index = FeatureIndex(PATTERNS, TEMPLATES)
    for docs in (first, later):
        before = observed(index, later)
        batch = TokenBatch(docs, learn=True)
        segments = [[Segment(i, i + 1, i % 2) for i in range(len(doc))] for doc in docs]
        index.learn(iter([(batch, Histories(PATTERNS).gold(segments, batch.offsets))]))
        assert observed(index, later) != before
        assert observed(index, later) == observed(
            FeatureIndex.from_arrays(PATTERNS, TEMPLATES, index.arrays()), later
        )


@pytest.mark.slow
def test_threads_that_share_an_index_find_what_one_finds(monkeypatch, extension):
    monkeypatch.setattr(plan, "MAX_VALUES", 20)  # words are forgotten all the time
    texts_of = TokenBatch.texts_of

    def while_others_work(batch, values):
        time.sleep(1e-5)
        return texts_of(batch, values)

    monkeypatch.setattr(TokenBatch, "texts_of", while_others_work)
    learning = random_docs(0, 5)
    segmentations = [[Segment(i, i + 1, i % 2) for i in range(len(doc))] for doc in learning]
    index, _ = learnt(TokenBatch(learning, learn=True), segmentations)
    batches = [random_docs(seed, 3) for seed in range(40)]

    def find(docs):
        return index.observe(TokenBatch(docs)).tokens.ids.tolist()

    expected = [find(docs) for docs in batches]
    assert len(set(map(len, expected))) > 5
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(find, batches * 5)) == expected * 5


def test_more_values_together_than_a_plan_has_room_for_are_found_all_the_same():
    template = AttributeTemplate(tuple(("ORTH", offset) for offset in range(-50, 51)))
    batch = TokenBatch([Doc(VOCAB, words=["x"] * 101)], learn=True)
    index = FeatureIndex(PATTERNS, [template])
    gold = Histories(PATTERNS).gold([[Segment(0, 101, 0)]], batch.offsets)
    index.learn(iter([(batch, gold)]))
    rows = index.observe(batch).tokens
    assert len(rows.ids) == 3  # the middle, and with an edge on either side
    assert np.flatnonzero(np.diff(rows.offsets)).tolist() == [49, 50, 51]
