"""The project tweets: its conversion, groups and votes by hand, its experiment and tables on a
corpus of a few tweets.
"""

import os
import random
from pathlib import Path

import pytest
import spacy
import srsly
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.vocab import Vocab

PROJECT = Path(__file__).parents[2] / "project" / "tweets"
LOADS = ("tweets", "references")
MSM2013 = Path(os.environ.get("HOCRF_DATA", "")) / "msm2013" / "TweetsTrainingSetCH.tsv"


@pytest.fixture(scope="module")
def convert(load):
    return load("convert")


@pytest.fixture(scope="module")
def vote(load):
    return load("vote").vote


# -------------------- the corpora


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
def test_phrases_beside_a_tweet_become_entities(convert, end):
    lines = [
        "1\tPER/Ada Lovelace;LOC/London; Org/Times;\t_Mention_ : Ada Lovelace leaves London - Times",
        "2\t\tnothing , ever",
        "3\tORG/Nowhere;PER/Max;\tMax said so",
    ]
    tweets, lost = convert.read_msm(end.join(lines) + end)
    assert [tweet.words for tweet in tweets][1:] == [
        ["nothing", ",", "ever"],
        ["Max", "said", "so"],
    ]
    assert [tweet.entities for tweet in tweets] == [
        [(2, 4, "PER"), (5, 6, "LOC"), (7, 8, "ORG")],
        [],
        [(0, 1, "PER")],
    ]
    assert lost == 1


@pytest.mark.parametrize(
    "text, phrases, expected",
    [
        ("Google / Groupon deal", ["Google", "Groupon"], [(0, 1), (2, 3)]),
        ("The Good , The Bad", ["The Good, The Bad"], [(0, 5)]),  # other spaces
        ("John met John Lennon", ["John", "John Lennon"], [(0, 1), (2, 4)]),
        # the longer phrase chooses first
        ("John Lennon met John", ["John", "John Lennon"], [(0, 2), (3, 4)]),
        ("Haiti and Haiti", ["Haiti", "Haiti"], [(0, 1), (2, 3)]),
        # of any case, a whole token before the middle of one
        ("the reds win for red", ["Red"], [(4, 5)]),
        ("the Reds win", ["Red"], [(1, 2)]),  # in the middle of a token
        ("New York", ["ew Yor"], [(0, 2)]),
        ("a b", ["c", ""], []),
        ("", ["a"], []),
    ],
)
def test_a_phrase_takes_its_first_free_place(load, text, phrases, expected):
    spans = load("common.tweets").find(text.split(), [("X", phrase) for phrase in phrases])
    assert spans == [(start, end, "X") for start, end in expected]


def test_sections_are_read_and_lines_without_a_token_left_out(convert, tmp_path):
    path = tmp_path / "x.conll"
    path.write_text(
        "Ada\tB-PER\nB\tI-PER\n\tO\nin\tO\nOld\tB-LOC\nYork\tB-LOC\n\n\nfin\tI-PER\n",
        encoding="utf8",
    )
    assert list(convert.read_conll(path)) == [
        (["Ada", "B", "in", "Old", "York"], [(0, 2, "PER"), (3, 4, "LOC"), (4, 5, "LOC")]),
        (["fin"], [(0, 1, "PER")]),
    ]


@pytest.mark.parametrize(
    "tags, expected",
    [
        ("B-PER B-PER O", [(0, 2, "PER")]),  # sections E, G and H
        ("O B-PER O", [(0, 2, "PER")]),  # section B
        ("B-PER I-PER O", [(0, 2, "PER")]),
        ("B-PER B-ORG O", [(0, 1, "PER"), (1, 2, "ORG")]),
        ("O O B-PER", [(2, 3, "PER")]),
        ("B-PER O O", [(0, 1, "PER")]),
    ],
)
def test_the_at_belongs_to_the_name(convert, tmp_path, tags, expected):
    path = tmp_path / "x.conll"
    path.write_text(
        "".join(f"{word}\t{tag}\n" for word, tag in zip("@ ada said".split(), tags.split())),
        encoding="utf8",
    )
    assert [tweet.entities for tweet in convert.read_conll(path)] == [expected]


def test_no_cluster_is_in_two_parts(convert, load):
    headlines = [f"event{n} in place{n} near river{n}" for n in range(30)]
    texts = [f"{line} {extra}" for line in headlines for extra in ("", "RT", "again now")] + [
        "hello",
        "hello",
        *"abcdef",
    ]
    tweets = [convert.Tweet(text.split(), []) for text in texts]
    parts = convert.split_by_cluster(tweets)
    assert sorted(" ".join(tweet.words) for part in parts.values() for tweet in part) == sorted(
        " ".join(text.split()) for text in texts
    )
    where = {}
    for part, members in parts.items():
        for tweet in members:
            assert where.setdefault(tweet.words[0], part) == part
        assert abs(len(members) - load("common.tweets").SHARES[part] * len(tweets)) <= 3
    assert convert.split_by_cluster(tweets) == parts
    assert convert.split_by_cluster(tweets, seed=1) != parts


def test_the_last_section_is_halved(convert):
    sections = {name: [convert.Tweet([f"{name}{i}"], []) for i in range(4)] for name in "abegh"}
    parts = {
        part: [tweet.words[0] for tweet in tweets]
        for part, tweets in convert.split_by_section(sections).items()
    }
    assert parts["dev"] == ["h0", "h1"] and parts["test"] == ["h2", "h3"]
    assert parts["train"] == [f"{name}{i}" for name in "abeg" for i in range(4)]


@pytest.mark.skipif(
    not MSM2013.is_file(),
    reason="needs MSM2013: set HOCRF_DATA to a folder with msm2013/TweetsTrainingSetCH.tsv",
)
def test_nearly_all_annotated_phrases_are_found(convert):
    tweets, lost = convert.read_msm(MSM2013.read_bytes().decode("utf8"))
    assert len(tweets) == 2815  # data/README.md
    assert lost < 10 and sum(len(tweet.entities) for tweet in tweets) + lost == 3194


# -------------------- groups and votes


def test_folds_cut_no_cluster_and_have_groups_of_their_own(load):
    grouping = load("grouping")
    vocab = Vocab()
    shared = "of the and to in"
    texts = [f"{shared} alpha{n} beta{n} gamma{n} {extra}" for n in range(30) for extra in "xyz"]
    docs = [Doc(vocab, words=text.split()) for text in texts]
    ids = grouping.make_folded_linkage(folds=3)(docs)
    assert len({group.split("-")[0] for group in ids}) == 3
    assert len(set(ids)) == 3, "five common words make one group of each fold"
    assert all(len(set(ids[i : i + 3])) == 1 for i in range(0, len(ids), 3)), (
        "three tweets of one cluster"
    )
    assert grouping.make_folded_linkage(folds=3, min_overlap=7)(docs) != ids


def tweet(words, *entities, group="g"):
    doc = Doc(Vocab(), words=words.split())
    doc.set_ents(
        [Span(doc, start, end, label) for start, end, label in entities], default="outside"
    )
    doc._.hocrf_group = group
    return doc


def votes(vote, docs, **settings):
    return [
        [(span.start, span.end, span.label_) for span in spans] for spans in vote(docs, **settings)
    ]


VOTES = {  # tweets with their entities, whether unlabelled places vote, and what is found
    "the majority of the places of a phrase decides": (
        [
            ("Beady Eye plays", [(0, 2, "PER")], "g"),
            ("we love Beady Eye", [(2, 4, "PER")], "g"),
            ("beady eye sold out", [(0, 2, "ORG")], "g"),
            ("BEADY EYE !", [], "g"),
            ("Beady Eye", [], "another"),
        ],
        False,
        [[(0, 2, "PER")], [(2, 4, "PER")], [(0, 2, "PER")], [(0, 2, "PER")], []],
    ),
    "unlabelled places vote": (
        [("may be", [(0, 1, "PER")], "g"), ("it may", [], "g"), ("may not", [], "g")],
        True,
        [[], [], []],
    ),
    "unlabelled places do not vote": (
        [("may be", [(0, 1, "PER")], "g"), ("it may", [], "g"), ("may not", [], "g")],
        False,
        [[(0, 1, "PER")], [(1, 2, "PER")], [(0, 1, "PER")]],
    ),
    "places in an entity are not unlabelled": (
        [
            *[("York", [(0, 1, "PER")], "g")] * 2,
            ("York", [], "g"),
            ("New York", [(0, 2, "LOC")], "g"),
        ],
        True,
        [*[[(0, 1, "PER")]] * 3, [(0, 2, "LOC")]],
    ),
    "the longest phrase wins, and who has no group votes alone": (
        [
            ("York", [(0, 1, "ORG")], None),
            ("New York", [(0, 2, "LOC")], "g"),
            ("York", [(0, 1, "PER")], "g"),
            ("New York York", [], "g"),
        ],
        False,
        [[(0, 1, "ORG")], [(0, 2, "LOC")], [(0, 1, "PER")], [(0, 2, "LOC"), (2, 3, "PER")]],
    ),
    "nobody": ([], True, []),
}


@pytest.mark.parametrize("tweets, outside, expected", VOTES.values(), ids=VOTES)
def test_phrases_are_voted_on(vote, tweets, outside, expected):
    if not Doc.has_extension("hocrf_group"):
        Doc.set_extension("hocrf_group", default=None)
    docs = [tweet(words, *entities, group=group) for words, entities, group in tweets]
    assert votes(vote, docs, outside=outside) == expected


# -------------------- the experiment


def write(path, seed):
    """Tweets in threes: a person, a thing of the same spelling, the clue in two of three tweets;
    other names in each part.
    """
    docs = []
    chance = random.Random(seed)
    for n, name in enumerate("".join(chance.sample("abcdefghijklmnop", 5)) for _ in range(12)):
        same = " ".join(f"{name}{number}" for number in range(4))
        clue = "Mr" if n % 2 else "the"
        for words in (
            f"{clue} {name} slept {same}",
            f"look , {name} {same}",
            f"{clue} {name} woke {same}",
        ):
            entities = [
                (token, token + 1, "PER")
                for token, word in enumerate(words.split())
                if word == name and n % 2
            ]
            docs.append(tweet(words, *entities, group=None))
    path.parent.mkdir(parents=True, exist_ok=True)
    DocBin(docs=docs).to_disk(path)


@pytest.fixture(scope="module")
def experiment(load, tmp_path_factory):
    """The whole experiment on a few tweets, with fewer iterations."""
    folder = tmp_path_factory.mktemp("tweets")
    if not Doc.has_extension("hocrf_group"):
        Doc.set_extension("hocrf_group", default=None)
    for part in ("train", "dev", "test"):
        write(folder / "corpus" / "msm2013" / f"{part}.spacy", part)
    module = load("experiment")
    module.ITERATIONS = (1, 5)
    module.main(
        PROJECT / "configs" / "tweets.cfg",
        folder / "corpus",
        folder / "predictions",
        folder / "metrics",
        ["msm2013"],
    )
    return folder


def test_every_decoder_has_predictions_measures_and_a_bound(load, experiment):
    tweets = load("tweets")
    for kind in tweets.KINDS:
        name = tweets.folder_of("msm2013", kind)
        run = srsly.read_json(experiment / "metrics" / f"{name}.json")
        systems = {row["system"]: row for row in run["systems"]}
        assert set(systems) == {*tweets.DECODERS, "vote", "vote, outside too"}
        assert "bound" not in systems["chain"] and systems["hybrid"]["problems"] > 0
        optimum = systems["hybrid"]["primal"]  # certified
        assert systems["hybrid"]["bound"] <= optimum + 1e-6
        for row in [*systems.values(), *run["traces"]]:
            if "bound" in row:
                assert row["primal"] - 1e-6 <= optimum <= row["bound"] + 1e-6
        assert [row["max_iterations"] for row in run["traces"] if row["system"] == "naive"] == [
            1,
            5,
        ]
        gold = list(
            DocBin().from_disk(experiment / "predictions" / name / "gold.spacy").get_docs(Vocab())
        )
        for system, row in systems.items():
            docs = list(
                DocBin()
                .from_disk(experiment / "predictions" / name / f"{system}.spacy")
                .get_docs(Vocab())
            )
            scores = spacy.scorer.Scorer.score_spans(
                [Example(doc, truth) for doc, truth in zip(docs, gold)], "ents"
            )
            assert row["micro"] == pytest.approx(100 * scores["ents_f"])


def test_the_report_has_all_systems_clusters_and_a_plot(load, experiment, tmp_path, check_plot):
    report = load("report")
    plot = tmp_path / "plot.png"
    report.main(experiment / "predictions", experiment / "metrics", plot, trials=99)
    printed = check_plot(plot)
    for name in (*load("tweets").DECODERS, "vote", "vote, outside too"):
        assert printed.count(f"| {name} |") == 2
    assert "36 tweets, 18 entities; 12 clusters" in printed, "of tweets with three words in common"
