"""Places that should agree, against their definition."""

import math

import joint_oracle
import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_hocrf.features.records import are_recordable
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.joint.places import PlaceSets
from spacy_hocrf.joint.templates import IdenticalPhrases, check_templates, places_of

WORDS = ["Ada", "ada", "New", "York", "the", "of", ".", " ", "x"]


@pytest.fixture(scope="module")
def nlp():
    return spacy.blank("xx")


def random_docs(nlp, seed):
    """Docs of up to 12 of a few words, in groups of one to three."""
    rng = np.random.default_rng(seed)
    docs = [
        Doc(nlp.vocab, words=[str(word) for word in rng.choice(WORDS, length)])
        for length in [0, *rng.integers(0, 13, 6)]
    ]
    return docs, np.cumsum(rng.integers(0, 2, len(docs)))


def found_sets(template, docs, groups):
    batch = TokenBatch(docs)
    agreements = template.find(batch, groups)
    places = [
        (
            int(batch.sequence[start]),
            int(start - batch.offsets[batch.sequence[start]]),
            int(end - start),
        )
        for start, end in zip(agreements.start, agreements.end)
    ]
    places = [(doc, start, start + length) for doc, start, length in places]
    return [frozenset(places[a:b]) for a, b in zip(agreements.offsets, agreements.offsets[1:])]


def as_sets(found):
    return sorted(sorted(places) for places in found)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("skip_stopwords", [False, True])
@pytest.mark.parametrize("max_pairs", [1, 4, 1000])
def test_identical_phrases_are_those_of_the_definition(nlp, seed, skip_stopwords, max_pairs):
    docs, groups = random_docs(nlp, seed)
    template = IdenticalPhrases(
        min_length=1 + seed % 2, max_length=3, max_pairs=max_pairs, skip_stopwords=skip_stopwords
    )
    lengths = range(1 + seed % 2, 4)
    expected = joint_oracle.pairs(
        joint_oracle.phrases(docs, groups, lengths, skip_stopwords), max_pairs
    )
    sets = found_sets(template, docs, groups)
    assert as_sets(sets) == as_sets(expected)
    assert len(set(sets)) == len(sets)


def test_places_of_a_set_do_not_overlap(nlp):
    doc = Doc(nlp.vocab, words=["Duran"] * 5)
    template = IdenticalPhrases(min_length=2, max_length=3)
    assert as_sets(found_sets(template, [doc], np.zeros(1, dtype=np.int64))) == [
        [(0, 0, 2), (0, 2, 4)]
    ]


@pytest.mark.parametrize("docs", [[], [""], ["", ""], ["one two three"]])
def test_nothing_is_found_in_nothing(nlp, docs):
    made = [nlp.make_doc(text) for text in docs]
    numbers = np.zeros(len(made), dtype=np.int64)
    assert len(IdenticalPhrases().find(TokenBatch(made), numbers)) == 0


BAD = {
    "no length": ("H099", IdenticalPhrases, {"min_length": 0}),
    "a weight beyond what bounds are proved to": ("H099", IdenticalPhrases, {"weight": 1e300}),
    "lengths crossed": ("H099", IdenticalPhrases, {"min_length": 3, "max_length": 2}),
    "a length in quotes": ("H099", IdenticalPhrases, {"min_length": "1"}),
    "a longest one in quotes": ("H099", IdenticalPhrases, {"max_length": "3"}),
    "a yes for a weight": ("H099", IdenticalPhrases, {"weight": True}),
    "a yes for a length": ("H099", IdenticalPhrases, {"max_length": True}),
    "a weight in quotes": ("H099", IdenticalPhrases, {"weight": "1.5"}),
    "no pair": ("H099", IdenticalPhrases, {"max_pairs": 0}),
    "weight not finite": ("H099", IdenticalPhrases, {"weight": float("inf")}),
    "unknown attribute": ("H023", IdenticalPhrases, {"attr": "LOVER"}),
    "unregistered extension": ("H024", IdenticalPhrases, {"attr": "_.nowhere"}),
}


@pytest.mark.parametrize("code, make, settings", [*BAD.values()], ids=[*BAD])
def test_bad_settings_are_named(code, make, settings):
    with pytest.raises(ValueError, match=rf"^\[{code}\]"):
        make(**settings)


def test_templates_are_checked():
    both = check_templates([IdenticalPhrases(), IdenticalPhrases(attr="ORTH")])
    assert [template.name for template in both] == [
        "IdenticalPhrases[LOWER,1-3]",
        "IdenticalPhrases[ORTH,1-3]",
    ]
    with pytest.raises(ValueError, match=r"^\[H096\]"):
        check_templates([])
    with pytest.raises(ValueError, match=r"^\[H097\].*'str'"):
        check_templates(["words"])
    with pytest.raises(ValueError, match=r"^\[H098\].*IdenticalPhrases"):
        check_templates([IdenticalPhrases(), IdenticalPhrases(max_pairs=5)])


@pytest.mark.parametrize(
    "offsets, start, end, reason",
    [
        ([0, 1], [0], [1], "fewer than two"),
        ([0, 2, 2], [0, 4], [1, 5], "fewer than two"),
        ([0, 2], [0, 4], [1], "fewer than two"),
        ([0, 2], [0, 9], [1, 10], "outside the batch of 9 tokens"),
        ([0, 2], [-1, 3], [1, 4], "outside"),
        ([0, 2], [0, 3], [0, 4], "outside"),
        ([0, 2], [0, 2], [1, 4], "next Doc"),
        ([0, 2], [0, 6], [1, 7], "several groups"),
        ([0, 2], [0, 1], [2, 3], "overlap"),
        ([0, 3], [3, 0, 3], [5, 1, 4], "overlap"),
        ([], [], [], "fewer than two"),
        ([0, 2], [0.5, 4.0], [1, 5], "PlaceSets without vectors of whole numbers"),
        ([[0, 2]], [[0, 4]], [[1, 5]], "without vectors"),
        (None, None, None, "without vectors"),
    ],
)
def test_places_of_a_template_of_ones_own_are_checked(nlp, offsets, start, end, reason):
    class Mine(IdenticalPhrases):
        def find(self, batch, groups):
            return PlaceSets(offsets, start, end)

    batch = TokenBatch([nlp.make_doc("one two three")] * 3)
    with pytest.raises(ValueError, match=rf"^\[H120\].*'Mine\[LOWER,1-3\]'.*{reason}"):
        places_of(Mine(), batch, np.array([0, 0, 1]))


def test_what_ours_read_of_a_doc_can_be_recorded():
    ours = IdenticalPhrases()

    class Mine(IdenticalPhrases):
        """Somebody's own, which may read anything."""

    assert are_recordable([ours])
    assert not are_recordable([Mine(**vars(ours))])


@pytest.mark.parametrize("found", [None, ([0], [], []), PlaceSets])
def test_what_is_no_place_sets_is_named(nlp, found):
    template = type("Mine", (IdenticalPhrases,), {"find": lambda self, batch, groups: found})()
    with pytest.raises(ValueError, match=f"H120.*'Mine.*{type(found).__name__} without vectors"):
        places_of(template, TokenBatch([nlp.make_doc("one two")]), np.zeros(1, dtype=np.int64))


@pytest.mark.parametrize(
    "member, found",
    [
        *(("weight", weight) for weight in (math.nan, 1e300, 10**400, "much", None, True)),
        *(("states", states) for states in ("PC", [1, 2])),
        *(("name", name) for name in ("", None, 3)),
    ],
)
def test_members_of_a_template_of_ones_own_are_checked(member, found):
    class Mine:
        name, outside, weight = "mine", False, 1.0

        def find(self, batch, groups):
            return None

    setattr(Mine, member, found)
    with pytest.raises(ValueError, match=rf"H099.*{member} is "):
        check_templates([Mine()])
