"""Groups of Docs: single linkage against brute force, readers and batchers that keep them whole,
through a config file too.
"""

import io
import random
from collections import Counter
from itertools import combinations, groupby

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from small_corpus import PIPELINE, annotation, documents
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_model_from_config, registry
from spacy.vocab import Vocab
from thinc.api import Config

from spacy_hocrf.annotation.groups import GROUP
from spacy_hocrf.joint.groups import (
    GroupedCorpus,
    SingleLinkage,
    group_docs,
    group_of,
    make_batch_by_group,
)

NLP = spacy.blank("xx")
SHARED = "one two three four five"


def text(words):
    return Doc(NLP.vocab, words=words.split(" ") if isinstance(words, str) else list(words))


def by_brute_force(word_sets, min_overlap):
    """Connected components by merging sets of Docs until nothing changes."""
    groups = [{i} for i in range(len(word_sets))]
    merged = True
    while merged:
        merged = False
        for a, b in combinations(groups, 2):
            if any(len(word_sets[i] & word_sets[j]) >= min_overlap for i in a for j in b):
                groups = [group for group in groups if group is not a and group is not b] + [a | b]
                merged = True
                break
    return {frozenset(group) for group in groups}


@given(
    st.lists(st.lists(st.sampled_from("abcdefghABC"), max_size=9), max_size=12), st.integers(1, 5)
)
def test_single_linkage_is_the_one_of_brute_force(texts, min_overlap):
    docs = [text(words) for words in texts]
    for attr, sets in (
        ("ORTH", list(map(set, texts))),
        ("LOWER", [{word.lower() for word in words} for words in texts]),
    ):
        ids = SingleLinkage(min_overlap, attr)(docs)
        groups = {frozenset(i for i, other in enumerate(ids) if other == group) for group in ids}
        assert groups == by_brute_force(sets, min_overlap)
        assert [*dict.fromkeys(ids)] == list(range(len(set(ids)))), (
            "numbered in the order of their first Docs"
        )


@pytest.mark.parametrize("docs", [["Ada ran"], text("Ada ran")])
def test_what_is_no_doc_is_named(docs):
    with pytest.raises(ValueError, match=r"\[H461\]"):
        group_docs(docs, SingleLinkage())


def test_five_shared_words_make_a_group_and_four_do_not():
    docs = [
        text(f"{SHARED} six"),
        text("ONE two three four seven"),
        text(f"{SHARED} {SHARED} eight"),
    ]
    assert SingleLinkage()(docs) == [0, 1, 0]
    assert SingleLinkage(4)(docs) == [0, 0, 0]
    assert SingleLinkage(4, "ORTH")(docs[:2]) == [0, 1]


def test_groups_reach_over_chains():
    docs = [text("a b c"), text("x y z"), text("c d e"), text("e f x")]
    assert SingleLinkage(1)(docs) == [0, 0, 0, 0]
    assert SingleLinkage(1)(docs[:3]) == [0, 1, 0]


def test_a_word_counts_once_and_white_space_not_at_all():
    assert SingleLinkage(2)([text("a a a"), text("a a b")]) == [0, 1]
    assert SingleLinkage(1)([text(["a", " "]), text(["b", " "])]) == [0, 1]
    assert SingleLinkage(1)([text([]), text(["a"]), text([])]) == [0, 1, 2]
    assert SingleLinkage()([]) == []


def test_a_vocab_without_a_language_knows_lower_case_too():
    words = [f"{SHARED} six", f"{SHARED.upper()} \n", "seven"]
    docs = [Doc(Vocab(), words=line.split(" ")) for line in words]
    assert SingleLinkage()(docs) == [0, 0, 1]
    assert SingleLinkage(1)([Doc(Vocab(), words=["\n", "a"]), Doc(Vocab(), words=["\n", "b"])]) == [
        0,
        1,
    ]


def test_words_in_more_docs_than_the_cap_count_for_nothing():
    docs = [text("the of a"), text("the of b"), text("the of c"), text("c d")]
    assert SingleLinkage(1, max_docs=3)(docs) == [0, 0, 0, 0]
    assert SingleLinkage(1, max_docs=2)(docs) == [0, 1, 2, 2]
    assert SingleLinkage(1, max_docs=2)(docs) == SingleLinkage(1)(
        [text("a"), text("b"), text("c"), text("c d")]
    )


@pytest.mark.parametrize(
    "make, parts",
    [
        (lambda: SingleLinkage(0), ["H110", "min_overlap is 0", "at least 1"]),
        (lambda: SingleLinkage("3"), ["H110", "min_overlap is '3'"]),
        (lambda: SingleLinkage(True), ["H110", "min_overlap is True"]),
        (lambda: make_batch_by_group(True), ["H110", "size is True"]),
        (lambda: SingleLinkage(max_docs=0), ["H110", "max_docs is 0"]),
        (lambda: SingleLinkage(attr="SHAPE"), ["H110", "'SHAPE'", "LOWER, ORTH"]),
        (lambda: make_batch_by_group("9"), ["H110", "size is '9'"]),
        (lambda: make_batch_by_group(0), ["H110", "size is 0", "[training.batcher]"]),
        (lambda: GroupedCorpus(None), ["H112", "[paths]"]),
        (lambda: GroupedCorpus("x.spacy", limit=-1), ["H110", "limit is -1"]),
        (lambda: group_docs([text("a")], lambda docs: []), ["H111", "0 ids", "each of 1 Docs"]),
    ],
)
def test_bad_input_is_named_with_what_is_expected(make, parts):
    with pytest.raises(ValueError) as caught:
        make()
    for part in parts:
        assert part in str(caught.value)


def test_group_docs_sets_the_extension_and_puts_groups_together():
    docs = [text(f"{SHARED} a"), text("b"), text(f"{SHARED} c"), text("d")]
    ordered = group_docs(iter(docs), SingleLinkage())
    assert [doc[-1].text for doc in ordered] == ["a", "c", "b", "d"]
    assert [doc._.hocrf_group for doc in ordered] == [0, 0, 1, 2]
    assert group_docs([]) == []


def test_equal_lists_are_a_group():
    ids = [["x"], ("y", ["z"]), ["x"]]
    docs = group_docs([text("a"), text("b"), text("c")], lambda docs: ids)
    assert [doc.text.strip() for doc in docs] == ["a", "c", "b"]


def test_docs_without_a_group_are_groups_of_their_own():
    docs = [text("a"), text("b"), text("c"), text("d"), text("e")]
    assert [group_of(doc) for doc in docs] == [None] * 5
    docs[1]._.set(GROUP, "x")
    docs[4]._.set(GROUP, "x")
    assert [doc.text.strip() for doc in group_docs(docs)] == ["a", "b", "e", "c", "d"]


def test_groups_reach_the_component_through_pipe():
    docs = group_docs([text("a"), text("b"), text("c")], lambda docs: [7, 8, 7])
    assert [(doc[0].text, doc._.hocrf_group) for doc in spacy.blank("xx").pipe(docs)] == [
        ("a", 7),
        ("c", 7),
        ("b", 8),
    ]


# -------------------- the reader

TWEETS = [
    f"{SHARED} don't",
    "nothing here",
    f"{SHARED} and more",
    "nobody there",
    f"some {SHARED}",
    "how now brown cow said she",
    "she said : how now , cow",
]
GROUPS = [0, 1, 0, 2, 0, 3, 3]


@pytest.fixture
def stored(tmp_path):
    """The tweets in a file, with the ids of their groups and tokens that spaCy's tokenizer would
    not make.
    """
    docs = [
        Doc(NLP.vocab, words=tweet.split(), ents=["B-X", *["O"] * (len(tweet.split()) - 1)])
        for tweet in TWEETS
    ]
    ungrouped = tmp_path / "ungrouped.spacy"
    DocBin(docs=docs, store_user_data=True).to_disk(ungrouped)
    for doc, group in zip(docs, GROUPS):
        doc._.set(GROUP, f"g{group}")
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "grouped.spacy")
    return tmp_path


def runs_of(examples):
    return [
        (group, len(list(members)))
        for group, members in groupby(examples, lambda eg: eg.reference._.hocrf_group)
    ]


def whole(examples):
    """No group is in two pieces."""
    runs = runs_of(examples)
    return len(runs) == len({group for group, _ in runs})


def test_stored_groups_reach_both_sides_in_one_piece(stored):
    examples = list(GroupedCorpus(stored / "grouped.spacy")(NLP))
    assert runs_of(examples) == [("g0", 3), ("g1", 1), ("g2", 1), ("g3", 2)]
    assert all(eg.predicted._.hocrf_group == eg.reference._.hocrf_group for eg in examples)
    assert all(
        eg.predicted is not eg.reference and not eg.predicted.ents and eg.reference.ents
        for eg in examples
    )


def test_gold_tokens_are_kept_or_the_text_is_tokenized_again(tmp_path):
    doc = Doc(
        NLP.vocab,
        words=["I", "don't", "."],
        spaces=[True, False, False],
        sent_starts=[True, False, True],
    )
    DocBin(docs=[doc], attrs=["SPACY", "SENT_START"]).to_disk(tmp_path / "one.spacy")
    grouper, english = SingleLinkage(), spacy.blank("en")
    (kept,) = GroupedCorpus(tmp_path / "one.spacy", grouper, gold_preproc=True)(english)
    (again,) = GroupedCorpus(tmp_path / "one.spacy", grouper)(english)
    assert [token.text for token in kept.predicted] == ["I", "don't", "."], (
        "and no Doc is cut into sentences"
    )
    assert [token.text for token in again.predicted] == ["I", "do", "n't", "."]
    assert kept.predicted.text == again.predicted.text == "I don't."


def test_a_grouper_overrides_what_is_stored(stored):
    grouper = SingleLinkage()
    examples = list(GroupedCorpus(stored / "grouped.spacy", grouper, gold_preproc=True)(NLP))
    assert runs_of(examples) == [(0, 3), (1, 1), (2, 1), (3, 2)]
    assert all(eg.predicted._.hocrf_group == eg.reference._.hocrf_group for eg in examples)


def test_whole_groups_are_shuffled(stored):
    reader = GroupedCorpus(stored / "grouped.spacy", shuffle=True)
    random.seed(0)
    orders = {tuple(group for group, _ in runs_of(list(reader(NLP)))) for _ in range(20)}
    assert len(orders) > 5
    assert all(whole(list(reader(NLP))) for _ in range(20))
    random.seed(0)
    again = {tuple(group for group, _ in runs_of(list(reader(NLP)))) for _ in range(20)}
    assert again == orders, "by the seed of [training]"


def test_the_limit_counts_docs_before_they_are_grouped(stored):
    assert runs_of(list(GroupedCorpus(stored / "grouped.spacy", limit=4)(NLP))) == [
        ("g0", 2),
        ("g1", 1),
        ("g2", 1),
    ]


def test_a_corpus_without_groups_is_warned_about(stored):
    with pytest.warns(UserWarning, match="W010.*ungrouped.spacy"):
        examples = list(GroupedCorpus(stored / "ungrouped.spacy")(NLP))
    assert len(examples) == len(TWEETS)


# -------------------- the batcher


def test_batches_are_of_whole_groups_however_the_examples_come(stored):
    examples = list(GroupedCorpus(stored / "grouped.spacy", gold_preproc=True)(NLP))
    sizes = dict(runs_of(examples))
    for seed in range(20):
        shuffled = random.Random(seed).sample(examples, len(examples))
        for size in (1, 10, 15, 1000):
            batches = list(make_batch_by_group(size)(shuffled))
            assert sum(map(len, batches)) == len(examples)
            for batch in batches:
                counts = Counter(eg.reference._.hocrf_group for eg in batch)
                assert whole(batch) and all(counts[group] == sizes[group] for group in counts)
                assert len(counts) == 1 or sum(map(len, batch)) <= size


def test_groups_fill_a_batch_up_to_its_size():
    examples = [Example(text(words), text(words)) for words in ("a b c", "d e", "f g h", "i")]
    batches = make_batch_by_group(5)(examples)
    assert [[len(eg) for eg in batch] for batch in batches] == [[3, 2], [3, 1]]
    schedule = make_batch_by_group(iter([3, 5, 1]))(examples)
    assert [[len(eg) for eg in batch] for batch in schedule] == [[3], [2, 3], [1]]
    docs = [eg.predicted for eg in examples]
    assert list(make_batch_by_group(6)(docs)) == [docs[:2], docs[2:]]
    assert list(make_batch_by_group(6)([])) == []


# -------------------- a config file

CONFIG = f"""{PIPELINE}
[corpora]

[corpora.train]
@readers = "spacy-hocrf.GroupedCorpus.v1"
path = "PATH"
gold_preproc = true

[corpora.train.grouper]
@misc = "spacy-hocrf.SingleLinkage.v1"
min_overlap = 5

[corpora.dev]
@readers = "spacy-hocrf.GroupedCorpus.v1"
path = "PATH"

[corpora.dev.grouper]
@misc = "spacy-hocrf.SingleLinkage.v1"

[training]
train_corpus = "corpora.train"
dev_corpus = "corpora.dev"
max_steps = 40
eval_frequency = 20
patience = 0

[training.batcher]
@batchers = "spacy-hocrf.batch_by_group.v1"

[training.batcher.size]
@schedules = "compounding.v1"
start = 10
stop = 40
compound = 1.1
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_spacy_train_takes_reader_grouper_and_batcher_from_a_config_file(tmp_path):
    docs = [
        Example.from_dict(NLP.make_doc(line), annotation(NLP, line, spans)).reference
        for line, spans in documents(24)
    ]
    DocBin(docs=docs).to_disk(tmp_path / "corpus.spacy")
    path = tmp_path / "config.cfg"
    path.write_text(CONFIG.replace("PATH", (tmp_path / "corpus.spacy").as_posix()), encoding="utf8")
    config = load_model_from_config(Config().from_disk(path), auto_fill=True).config
    nlp = init_nlp(config)
    resolved = registry.resolve(
        {"corpora": config["corpora"], "batcher": config["training"]["batcher"]}
    )
    examples = list(resolved["corpora"]["train"](nlp))
    groups = dict(runs_of(examples))
    assert whole(examples) and max(groups.values()) > 1 and len(groups) > 1
    for batch in resolved["batcher"](random.sample(examples, len(examples))):
        assert all(count == groups[group] for group, count in runs_of(batch))
    stream = io.StringIO()
    trained, _ = train(nlp, stdout=stream, stderr=stream)
    assert trained.evaluate(list(resolved["corpora"]["dev"](trained)))["ents_f"] == 1
