"""`python -m spacy hocrf convert`: what models have found, by places or words, with scores."""

import json
import re
from itertools import combinations

import converting
import pytest
from converting import lines
from hypothesis import assume, given
from hypothesis import strategies as st

from spacy_hocrf.cli.convert.docs import SCORED
from spacy_hocrf.cli.convert.lines import _goes_on, _places_of

MORE = "words of spans that the text has more often: unknown there"
ABSENT = "spans whose words are not in the text: it is unknown but for others"
AGAIN = "words of spans that the text has less often: at the same places again"


def read(tmp_path, entities, text="Ada met Adam and Ada in New York", into="llm"):
    """The Doc of a text, and what was lost."""
    rows = [{"text": text, "entities": entities}] * 2
    (doc, other), report = converting.read(tmp_path / "a.jsonl", lines(*rows), into=into)
    assert other.to_json() == doc.to_json()
    return doc, {what: times // 2 for what, times in report.lost.items()}


def named(group):
    return [(span.start, span.end, span.label_) for span in group]


def word(text, label, **more):
    return {"text": text, "label": label, **more}


def test_mentions_have_the_places_of_their_words_in_order(tmp_path):
    found = [word("New  York", "GPE", score=0.5), word("Ada", "PERSON"), word("Ada", "PERSON")]
    doc, lost = read(tmp_path, found)
    group = doc.spans["llm"]
    assert named(group) == [(6, 8, "GPE"), (0, 1, "PERSON"), (4, 5, "PERSON")]
    assert group.attrs == {"scores": [0.5, 1.0, 1.0]} and not lost
    assert not doc.has_annotation("ENT_IOB")


def test_where_words_stand_more_often_than_they_are_mentioned_it_is_unknown(tmp_path):
    doc, lost = read(tmp_path, [word("Ada", "PERSON", score=0.75)])
    assert named(doc.spans["llm"]) == [(0, 1, "PERSON")]
    assert doc.spans["llm"].attrs == {"scores": [0.75], "unknown": [[4, 5]]} and lost == {MORE: 1}


def test_words_stand_inside_those_of_a_longer_span_only_if_nowhere_else(tmp_path):
    """Ada Lovelace, and later Ada: as a model of language names both."""
    text = "Ada Lovelace met Max . Ada left . Ada Lovelace stayed"
    names = [word("Ada", "PER"), word("Ada Lovelace", "PER"), word("Max", "PER")]
    doc, lost = read(tmp_path, names, text)
    assert named(doc.spans["llm"]) == [(5, 6, "PER"), (0, 2, "PER"), (3, 4, "PER")]
    assert doc.spans["llm"].attrs == {"unknown": [[8, 10]]} and lost == {MORE: 1}
    shares = [word("Ada Lovelace", "PER", score=0.75), word("Lovelace", "PER", score=0.25)]
    doc, lost = read(tmp_path, shares, "Ada Lovelace left")
    assert named(doc.spans["llm"]) == [(0, 2, "PER"), (1, 2, "PER")] and not lost


def test_what_is_mentioned_more_often_than_it_is_there_is_there_again(tmp_path):
    """One answer that repeats itself; shares of several, of two labels."""
    doc, lost = read(tmp_path, [word("New York", "GPE")] * 3)
    assert named(doc.spans["llm"]) == [(6, 8, "GPE")]
    assert not doc.spans["llm"].attrs and lost == {AGAIN: 2}
    shares = [word("New York", "GPE", score=0.75), word("New York", "ORG", score=0.25)]
    doc, lost = read(tmp_path, shares)
    assert named(doc.spans["llm"]) == [(6, 8, "GPE"), (6, 8, "ORG")] and lost == {AGAIN: 1}
    assert doc.spans["llm"].attrs == {"scores": [0.75, 0.25]}


@pytest.mark.parametrize("key", ["score", "confidence", "probability"])
def test_a_score_has_one_of_several_names_and_the_highest_counts(tmp_path, key):
    found = [word("New York", "GPE", **{key: share}) for share in (0.25, 0.75, None, 0.5)]
    doc, _ = read(tmp_path, found)
    assert doc.spans["llm"].attrs == {"scores": [0.75]}


@pytest.mark.parametrize("text", ["Emmy", "dam"])
def test_words_that_are_not_in_the_text_make_the_rest_of_it_unknown(tmp_path, text):
    doc, lost = read(tmp_path, [word(text, "PERSON"), word("New York", "GPE")])
    assert named(doc.spans["llm"]) == [(6, 8, "GPE")]
    assert doc.spans["llm"].attrs == {"unknown": [[0, 8]]} and lost == {ABSENT: 1}


@pytest.mark.parametrize(
    "words, text, lang, places",
    [
        ("北京", "王明住在北京,去北京。", "zh", ["北京", "北京"]),
        ("\U00020bb7田", "今天\U00020bb7田來", "zh", ["\U00020bb7田"]),
        ("東京", "彼は東京にいる", "zh", ["東京"]),  # by characters, whatever the language
        ("राम", "रामायण में राम हैं", "hi", ["राम"]),
        ("ल", "दिल ल", "hi", ["ल"]),  # not what follows a vowel sign
        ("K\u00f6ln", "in Ko\u0308ln", "de", ["Ko\u0308ln"]),
        ("Ko\u0308ln", "in K\u00f6ln", "de", ["K\u00f6ln"]),
        ("Zoe", "Zoe\u0308 und Zoe", "de", ["Zoe"]),
        (
            "Zo\u00eb K\u00f6hl",
            "Zoe\u0308 K\u00f6hl",
            "de",
            ["Zoe\u0308 K\u00f6hl"],
        ),  # of both kinds
        ("1 1", "11 1 1", "en", ["1 1"]),  # not half of what stands before it
    ],
)
def test_words_are_found_in_every_script(tmp_path, words, text, lang, places):
    row = {"text": text, "entities": [word(words, "X") for _ in places]}
    (doc,), report = converting.read(tmp_path / "a.jsonl", lines(row), lang, into="llm")
    assert [span.text for span in doc.spans["llm"]] == places
    assert not report.losses and not doc.spans["llm"].attrs


@given(
    st.lists(st.sampled_from("a b e1 ,.\u00e9\u0308\u4eac\uae40"), max_size=12).map("".join),
    st.lists(st.sampled_from("a b1,\u4eac"), min_size=1, max_size=4).map("".join),
)
def test_words_are_found_as_by_looking_everywhere(text, words):
    words = words.strip()
    assume(words)
    wanted, expected, past = re.sub(r"\s+", " ", words), [], 0
    for start, end in combinations(range(len(text) + 1), 2):
        is_whole = not any(0 < at < len(text) and _goes_on(text, at) for at in (start, end))
        if start >= past and is_whole and re.sub(r"\s+", " ", text[start:end]) == wanted:
            expected.append((start, end))
            past = end
    assert _places_of([words], text) == {words: expected}


def test_a_korean_name_is_found_before_its_particle(tmp_path):
    doc, lost = read(tmp_path, [word("김철수", "PER")], "김철수는 갔다")
    assert doc.spans["llm"].attrs == {"unknown": [[0, 1]]} and ABSENT not in lost


def test_places_go_before_words_and_groups_of_hugging_face_are_labels(tmp_path):
    found = [{"start": 17, "end": 20, "word": "ada", "entity_group": "PER", "score": 0.25}]
    doc, lost = read(tmp_path, found)
    assert named(doc.spans["llm"]) == [(4, 5, "PER")] and not lost
    assert doc.spans["llm"].attrs["scores"] == [0.25]


def test_scores_have_no_place_in_ents_which_is_said(tmp_path):
    doc, lost = read(tmp_path, [word("New York", "GPE", score=0.5)], into="ents")
    assert named(doc.ents) == [(6, 8, "GPE")] and lost == {SCORED: 1}
    assert all(token.ent_iob for token in doc)


@pytest.mark.parametrize("score", [1.5, -0.1, "high", float("nan")])
def test_what_is_no_probability_is_refused(tmp_path, score):
    with pytest.raises(ValueError, match=r"H290.*line 1.*the score .*from 0 to 1"):
        read(tmp_path, [word("Ada", "PERSON", score=score)])


ADA = ("Ada", "PERSON"), ("New York", "GPE")


@pytest.mark.parametrize(
    "entities",
    [
        [list(pair) for pair in ADA],
        [{"text": text, "type": label} for text, label in ADA],
        [{"word": text, "entity_type": label} for text, label in ADA],
        [{"entity": text, "category": label} for text, label in ADA],
        [{"value": text, "entity": label} for text, label in ADA],
        [{"name": text, "tag": label, "start": None, "end": None} for text, label in ADA],
        {"PERSON": ["Ada"], "GPE": "New York", "ORG": [], "DATE": None, "LAW": ""},
        {"PERSON": [{"text": "Ada"}], "GPE": [[12, 20]]},
        [{"start_char": 0, "end_char": 3, "type": "PERSON"}, [12, 20, "GPE"]],
        [{"begin": 0, "end": 3, "entity": "PERSON"}, {"text": "New York", "labels": ["GPE"]}],
    ],
    ids=lambda entities: json.dumps(entities)[:40],
)
def test_a_span_is_read_whatever_its_parts_are_called(tmp_path, entities):
    doc, lost = read(tmp_path, entities, "Ada met Max New York")
    assert {*named(doc.spans["llm"])} == {(0, 1, "PERSON"), (3, 5, "GPE")} and not lost


def test_pieces_of_spans_are_refused(tmp_path):
    """As a pipeline of transformers writes them without an aggregation."""
    found = [{"entity": "B-PERSON", "score": 0.5, "word": "ada", "start": 0, "end": 3}]
    with pytest.raises(ValueError, match=r"H290.*aggregation_strategy"):
        read(tmp_path, found)


@pytest.mark.parametrize("entities", [{"PERSON": {"Ada": [[0, 2]]}}, {"PERSON": [{"at": 3}]}])
def test_an_object_that_is_not_words_by_label_is_refused(tmp_path, entities):
    with pytest.raises(ValueError, match=r"H290.*the span.*words and a label"):
        read(tmp_path, entities)


@pytest.mark.parametrize("empty", [[], {}])
def test_an_empty_list_of_spans_does_not_hide_another(tmp_path, empty):
    row = {"text": "Ada", "labels": empty, "entities": [["Ada", "PERSON"]]}
    (doc,), report = converting.read(tmp_path / "a.jsonl", lines(row))
    assert named(doc.ents) == [(0, 1, "PERSON")] and not report.losses


def test_words_are_found_in_other_capitals_if_nowhere_as_they_are(tmp_path):
    found = [
        word("adam", "PERSON"),
        word("ADAM", "PERSON"),
        word("Ada", "PERSON"),
        word("new york", "GPE"),
    ]
    doc, lost = read(tmp_path, found, "Adam ADAM met Ada , aDA and New York")
    assert named(doc.spans["llm"]) == [
        (0, 1, "PERSON"), (1, 2, "PERSON"), (3, 4, "PERSON"), (7, 9, "GPE"),
    ]  # fmt: skip
    assert lost == {"spans whose words the text has in other capitals: taken": 2}


def test_ends_that_are_the_last_character_are_told_by_the_words(tmp_path):
    found = [
        {"text": "Ada", "start": 0, "end": 2, "label": "A"},
        word("York", "B", start=21, end=24),
    ]
    doc, lost = read(tmp_path, found, "Ada met Adam , of New York")
    assert named(doc.spans["llm"])[0] == (0, 1, "A")
    assert lost["spans whose end is their last character: one more"] == 1


@pytest.mark.parametrize("start, end", [(4, 7), (-1, 2), (500, 503), (12.0, 15.0)])
def test_a_wrong_place_is_not_believed_if_the_text_has_the_words(tmp_path, start, end):
    """As language models count. Words that are nowhere may say the same in another way: "NYC"."""
    found = [word("Ada", "PERSON", start=start, end=end), word("New York", "GPE", start=22, end=30)]
    doc, lost = read(tmp_path, found, "Max met Bob . Ada left New York")
    assert named(doc.spans["llm"]) == [(4, 5, "PERSON"), (6, 8, "GPE")]
    assert lost == {"spans at places that do not have their words: where the words are": 2}
    doc, lost = read(tmp_path, [word("New York City", "GPE", start=0, end=3)], "NYC , New York")
    assert named(doc.spans["llm"]) == [(0, 1, "GPE")]
    assert lost == {"spans that are said to have another text": 1}
