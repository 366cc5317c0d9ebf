"""What a window of the page asks for, and what becomes of it."""

import os
import random

import pytest
from word_loop import WordLoop

from spacy_hocrf.cli.label.session import Conflict, Request, Session, TextToLabel
from spacy_hocrf.cli.label.store import DecisionStore

LABELS = ["PER", "LOC"]
WORDS = [
    ["Ada ", "lives ", "in ", "Paris", "."],
    ["  ", "🙂 ", "Max ", "\n\n", "met ", "Ada ", " "],
    ["Paris ", "bores ", "Ada"],
    ["Kim ", "slept"],
]
TEXTS = ["".join(words) for words in WORDS]


@pytest.fixture
def begin(tmp_path):
    """Begins a session in the same folder, with another loop each time."""
    stores = []

    def beginning(texts=None, labels=LABELS):
        for store in stores:
            store.close()
        texts = texts or [TextToLabel(words) for words in WORDS]
        stores.append(
            DecisionStore(tmp_path / "mine", ["".join(each.words) for each in texts], labels)
        )
        session = Session(texts, labels, stores[-1], WordLoop(TEXTS), written.append)
        return session, session._loop

    written = beginning.written = []
    yield beginning
    stores[-1].close()


def ask(session, what, **request):
    return getattr(session, what)(Request(**request))


def decide(session, view, spans, window=1, **more):
    asked = {"window": window, "text": view["text"], "revision": view["revision"]}
    return ask(session, "decide", **asked, spans=spans, **more)


def test_texts_come_one_after_the_other_and_are_read(begin):
    session, loop = begin()
    first = ask(session, "open")
    assert first["window"] == 1 and first["labels"] == LABELS
    view = first["view"]
    assert view["text"] == 0 and view["words"] == WORDS[0] and view["why"] == "random"
    assert view["readings"] == view["spans"] == [] and view["state"] == "open"
    after = decide(session, view, [(3, 4, 1), (0, 1, 0)])
    assert loop.calls == [("decide", 0, ((0, 3, "PER"), (13, 18, "LOC")), (), None)]
    view = after["view"]
    assert (view["text"], view["why"]) == (1, "doubt")
    assert view["readings"] == [
        {"spans": [[5, 6, 0, 0.9]], "sure": 0.6},
        {"spans": [], "sure": 0.3},
    ]
    assert view["others"] == [[5, 6, [[1, 0.04], [-1, 0.04]]]]
    assert after["progress"]["annotated"] == 1 and after["progress"]["texts"] == 4


def test_what_is_said_meanwhile_holds_in_the_readings(begin):
    session, _ = begin()
    decide(session, ask(session, "open")["view"], [(0, 1, 0)])

    def read(**said):
        readings = ask(session, "read", text=1, **said)["readings"]
        return [[tuple(span[:3]) for span in reading["spans"]] for reading in readings]

    assert read(spans=[(2, 3, 1)]) == [[(2, 3, 1), (5, 6, 1)], [(2, 3, 1)]]
    assert read(outside=[(5, 6)]) == read(unknown=[(4, 6)]) == [[]]


def test_spans_are_without_white_space_at_their_ends(begin):
    session, loop = begin()
    decide(session, ask(session, "open") and ask(session, "show", text=1)["view"], [(0, 4, 0)])
    ((start, end, _),) = loop.calls[-1][2]
    assert TEXTS[1][start:end] == "🙂 Max"
    view = ask(session, "show", text=1)["view"]
    assert view["spans"] == [[1, 3, 0]] and view["outside"] == [(4, 6)]
    with pytest.raises(ValueError, match=r"H545.*no words"):
        decide(session, view, [(3, 4, 0)])


def test_undo_takes_back_one_decision_after_the_other(begin):
    session, loop = begin()
    view = ask(session, "open")["view"]
    view = decide(session, view, [(0, 1, 0)])["view"]
    view = ask(session, "skip", window=1, text=1, revision=0)["view"]
    assert view["text"] == 2
    again = ask(session, "show", text=0)["view"]
    assert again["state"] == "annotated" and again["spans"] == [[0, 1, 0]]
    decide(session, again, [(3, 4, 1)])
    undone = ask(session, "undo", window=1)["view"]
    assert undone["text"] == 0 and undone["spans"] == [[3, 4, 1]]  # to be corrected
    assert loop.said == {0: ((0, 3, "PER"),)}
    assert ask(session, "undo", window=1)["view"]["text"] == 1
    undone = ask(session, "undo", window=1)["view"]
    assert (undone["text"], undone["state"]) == (0, "open") and loop.said == {}
    assert ask(session, "undo", window=1)["view"] is None


def test_the_same_decision_again_is_none(begin):
    session, _ = begin()
    decide(session, ask(session, "open")["view"], [(0, 1, 0)])
    decide(session, ask(session, "show", text=0)["view"], [(0, 1, 0)])
    assert ask(session, "undo", window=1)["view"]["state"] == "open"


def test_of_two_windows_the_one_opened_last_decides(begin):
    session, loop = begin()
    view = ask(session, "open")["view"]
    assert ask(session, "open")["window"] == 2
    for what in ("decide", "skip", "undo"):
        with pytest.raises(Conflict, match="H546"):
            ask(session, what, window=1, text=0)
    assert not loop.calls
    decide(session, view, [(0, 1, 0)], window=2)
    with pytest.raises(Conflict, match=r"H547.*Text 1 "):
        decide(session, view, [(3, 4, 1)], window=2)
    assert loop.said == {0: ((0, 3, "PER"),)}


@pytest.mark.parametrize(
    "request_",
    [
        {"text": 4},
        {"text": -1},
        {"spans": [(0, 1, 2)]},
        {"spans": [(0, 1, -1)]},
        {"spans": [(0, 6, 0)]},
        {"spans": [(-1, 2, 0)]},
        {"spans": [(1, 1, 0)]},
        {"spans": [(0, 2, 0), (1, 3, 1)]},
        {"spans": [(0, 2, 0)], "unknown": [(1, 3)]},
        {"unknown": [(0, 10**30)]},
    ],
)
def test_what_cannot_be_is_refused_and_not_kept(begin, request_):
    session, loop = begin()
    ask(session, "open")
    with pytest.raises(ValueError, match="H545"):
        ask(session, "decide", **{"window": 1, "text": 0} | request_)
    assert not loop.calls
    decide(session, ask(session, "show", text=0)["view"], [(0, 1, 0)])


def test_what_cannot_be_written_is_not_learnt(begin, monkeypatch):
    session, loop = begin()
    view = ask(session, "open")["view"]

    def full(_):
        raise OSError("full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(ValueError, match="H544"):
            decide(session, view, [(0, 1, 0)])
    assert loop.said == {}
    decide(session, view, [(0, 1, 0)])
    assert len(loop.said) == 1


def test_search_shows_what_was_decided_last_first(begin):
    session, _ = begin()
    view = decide(session, ask(session, "open")["view"], [(0, 1, 0)])["view"]
    ask(session, "skip", window=1, text=1, revision=0)
    rows = ask(session, "search", words="ADA")["rows"]
    assert [(row["text"], row["state"]) for row in rows] == [
        (1, "skipped"),
        (0, "annotated"),
        (2, "open"),
    ]
    assert [row["text"] for row in ask(session, "search")["rows"]] == [1, 0, 2, 3]
    assert view["words"] == WORDS[1]


def test_search_finds_letters_with_accents_in_either_form(begin):
    session, _ = begin([TextToLabel(["Ko\u0308ln ", "am ", "Rhein"]), *map(TextToLabel, WORDS)])
    for words in ("k\u00f6ln", "Ko\u0308ln"):
        (row,) = ask(session, "search", words=words)["rows"]
        assert row["begin"] == "K\u00f6ln am Rhein"


def test_what_a_file_says_already(begin):
    texts = [
        TextToLabel(WORDS[0], spans=((0, 3, "PER"),)),
        TextToLabel(WORDS[1], spans=((10, 13, "PER"),), unknown=((0, 9),)),
        *(TextToLabel(words) for words in WORDS[2:]),
    ]
    session, loop = begin(texts)
    assert [call[4] for call in loop.calls] == [{"given": True}] * 2
    answer = ask(session, "open")
    assert answer["progress"]["annotated"] == 1
    view = answer["view"]
    assert (view["text"], view["state"]) == (1, "open")  # annotated in part
    assert view["unknown"] == [(0, 4)]
    decide(session, view, [(2, 3, 1)])
    session, loop = begin(texts)
    assert loop.said == {0: ((0, 3, "PER"),), 1: ((4, 7, "LOC"),)}
    ask(session, "open")
    ask(session, "undo", window=1)
    assert loop.calls[-1] == ("decide", 1, ((10, 13, "PER"),), ((0, 9),), {"given": True})


def test_export_has_what_holds(begin):
    session, _ = begin()
    view = decide(session, ask(session, "open")["view"], [(0, 1, 0)], unknown=[(3, 5)])["view"]
    ask(session, "skip", window=1, text=view["text"], revision=0)
    ask(session, "export")
    (texts,) = begin.written
    assert [text.spans for text in texts] == [((0, 3, "PER"),), None, None, None]
    assert [text.unknown for text in texts] == [((13, 19),), (), (), ()]


def test_what_cannot_be_exported_is_saved_all_the_same(begin):
    session, _ = begin()

    def full(_):
        raise OSError(28, "No space left on device", "mine/train.spacy")

    session._export = full
    with pytest.raises(ValueError, match=r"H587.*No space left.*train\.spacy.*annotations\.jsonl"):
        ask(session, "export")
    session._export = begin.written.append
    ask(session, "export")
    assert len(begin.written) == 1


@pytest.mark.parametrize("seed", range(5))
def test_a_session_that_is_begun_again_is_as_it_was(begin, seed):
    chance = random.Random(seed)
    session, loop = begin()
    ask(session, "open")
    for _ in range(30):
        view = ask(session, "show", text=chance.randrange(4))["view"]
        about = {"window": 1, "text": view["text"], "revision": view["revision"]}
        what = chance.choice(["decide", "decide", "skip", "undo"])
        about |= {"spans": [(1, 2, chance.randrange(2))]} if what == "decide" else {}
        ask(session, what, **about)
        begun, other = begin()
        assert [ask(begun, "show", text=i) for i in range(4)] == [
            ask(session, "show", text=i) for i in range(4)
        ]
        assert other.said == loop.said
        session, loop = begun, other
        ask(session, "open")
