"""The model beside a person: what it learns, reads, chooses and says, without a page."""

import re
import threading
from functools import partial

import numpy as np
import pytest
import spacy
from calls import calls_of_ours, instructions_of_ours
from small_corpus import documents
from spacy.tokens import Doc

from spacy_hocrf.cli.label.loop import SHARE, LabelLoop
from spacy_hocrf.model.architectures import weights_of

pytestmark = pytest.mark.slow
LABELS = ("PERSON", "PLACE")
EXACT = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 1.0}
TEXTS = [row for row in documents(40) if "Carl" not in row[0]][:24]


@pytest.fixture
def begin():
    """Makes loops, and closes them: settings of the component, texts."""
    made = []

    def make(factory="hocrf", rows=TEXTS, nlp=None, **settings):
        key = "sc" if factory == "hocrf_spans" else None
        if nlp is None:
            nlp = spacy.blank("en")
            nlp.add_pipe(factory, name="hocrf", config=settings)
        made.append(LabelLoop(nlp, [nlp.make_doc(text) for text, _ in rows], LABELS, spans_key=key))
        return made[-1]

    yield make
    for each in made:
        each.close()


def annotate(loop, texts, rows=TEXTS):
    for text in texts:
        loop.decide(text, rows[text][1])


def spans_of(reading):
    return [span[:3] for span in reading[0]]


@pytest.mark.parametrize("factory", ["hocrf", "hocrf_spans"])
def test_what_is_decided_is_read_in_other_texts(begin, factory):
    loop = begin(factory)
    assert loop.readings(23) == ([], [], 0)
    assert loop.model is None
    annotate(loop, range(20))
    loop.wait()
    found = loop.readings(21, n=5)
    assert spans_of(found.readings[0]) == TEXTS[21][1]
    chances = [chance for _, chance in found.readings]
    assert (
        chances == sorted(chances, reverse=True) and sum(chances) < 1 + 1e-9 and len(chances) == 5
    )
    for (_, _, _, probability), (start, end, others) in zip(found.readings[0][0], found.others):
        assert (start, end) in [span[:2] for span in TEXTS[21][1]]
        assert probability + sum(chance for _, chance in others) < 1 + 1e-6


def test_a_model_of_all_texts_is_the_one_that_training_finds(begin):
    """However it came there: decided one by one, changed, withdrawn."""
    loop = begin(trainer=EXACT, model={"order": 1}, decoder={"cost": 0.3})
    tight = {"improvement_tolerance": 1e-12, "gradient_tolerance": 1e-9}
    loop._models._config["trainer"].update(tight)
    loop.decide(0, [])
    for text in range(6):
        annotate(loop, [text])
        loop.wait()
    loop.withdraw(5)
    loop.wait()
    alone = begin(trainer=EXACT, model={"order": 1}, decoder={"cost": 0.3})
    alone._models._config["trainer"].update(tight)
    annotate(alone, range(5))
    alone.wait()
    found, expected = (each._model.pipe for each in (loop, alone))
    assert found.structure.size == expected.structure.size  # no trace of text 5
    places = found.structure.found_in(expected.structure)
    difference = weights_of(found.model) - weights_of(expected.model)[places]
    assert np.abs(difference).max() < 1e-3  # of weights of about 1, float32
    loop.withdraw(5)  # nothing to take back
    for text in range(5):
        loop.withdraw(text)
    loop.wait()
    assert loop.readings(5).readings == []


def test_what_a_person_fixes_changes_the_rest(begin):
    loop = begin()
    annotate(loop, range(20))
    loop.wait()
    start, end, label = TEXTS[21][1][0]
    other = next(each for each in LABELS if each != label)
    found = loop.readings(21, fixed=[(start, end, other)])
    assert all((start, end, other) in spans_of(reading) for reading in found.readings)
    assert found.readings[0][0][0][3] == pytest.approx(1.0)
    found = loop.readings(21, outside=[(start, end)])
    assert not any(
        first < end and start < last
        for reading in found.readings
        for first, last, _ in spans_of(reading)
    )
    half = loop.readings(21, fixed=[(start, end - 2, label)])  # a part of a token
    assert spans_of(half.readings[0])[0] == (start, end, label)


def test_what_the_model_cannot_have_is_laid_over_its_reading(begin):
    loop = begin()
    annotate(loop, range(20))
    loop.wait()
    text, spans = TEXTS[21]
    long = (0, len(text), "PERSON")  # longer than any that was annotated
    assert [spans_of(each) for each in loop.readings(21, fixed=[long]).readings] == [[long]]
    found = loop.readings(21, fixed=[(0, 2, "NEW"), spans[-1]])
    assert found.readings[0][0][0] == (0, len(text.split()[0]), "NEW", 1.0)
    assert spans[-1] in spans_of(found.readings[0])


@pytest.mark.parametrize("fixed", ["nothing", "spans", "all"])
def test_a_reading_takes_work_in_proportion_to_the_text(begin, fixed):
    """Without a span that is said, and with hundreds of them."""
    text, spans = TEXTS[0]
    rows = [(" ".join([text] * n), []) for n in (25, 50)]
    loop = begin(rows=[*TEXTS[:1], *rows])
    annotate(loop, [0], TEXTS)
    loop.wait()

    def work(i, n):
        width = len(text) + 1
        said = [(k * width + a, k * width + b, y) for k in range(n) for a, b, y in spans]
        gaps = [(start + 1, start + 2) for _, start, _ in said]
        return instructions_of_ours(
            lambda: loop.readings(
                i, said if fixed != "nothing" else (), gaps if fixed == "all" else ()
            )
        )

    assert work(2, 50) < 2.2 * work(1, 25)


def test_of_many_words_the_model_cannot_have_one(begin):
    """The others are found with a reading for each halving, not with one for each of them."""
    text, spans = TEXTS[0]
    loop = begin(rows=[*TEXTS[:1], (" ".join([text] * 64), [])])
    annotate(loop, [0], TEXTS)
    loop.wait()
    width = len(text) + 1
    said = [(k * width + a, k * width + b, y) for k in range(64) for a, b, y in spans]
    said[70] = (*said[70][:2], "NEW")
    found, readings = [], ("pipeline/component.py", "reading")
    entered = calls_of_ours(lambda: found.append(loop.readings(1, said)))
    assert {*said} == {*spans_of(found[0].readings[0])}
    assert entered[readings] < 24


def test_stretches_that_are_unknown_teach_nothing(begin):
    """The model is as sure as without them, and not sure that nothing is there."""
    loop = begin()
    rows = [(text, []) for text, _ in TEXTS]
    for text in range(4):
        loop.decide(text, TEXTS[text][1])
    for text in range(4, 20):
        loop.decide(text, [], unknown=[(0, len(rows[text][0]))])
    loop.wait()
    sure = loop.readings(21).readings[0]
    assert spans_of(sure)
    for text in range(4, 20):
        loop.decide(text, [])
    loop.wait()
    assert len(spans_of(loop.readings(21).readings[0])) < len(spans_of(sure))


def test_one_in_so_many_texts_is_chosen_at_random_and_these_are_all_alike(begin):
    rows = [(f"{text} {i} x", spans) for i in range(4) for text, spans in TEXTS]
    loop = begin(rows=rows)
    assert loop.next().why == "random"
    chosen = []
    for _ in range(40):
        found = loop.next()
        assert loop.next() == found and found.text not in [text for text, _ in chosen]
        chosen.append(found)
        assert loop.decide(found.text, rows[found.text][1]) == {"random": found.why == "random"}
        loop.wait()
    why = [each.why for each in chosen]
    assert why.count("random") == 40 // SHARE and loop.progress().random == 1 / SHARE
    again = begin(rows=rows)
    assert [text for text, why in chosen if why == "random"] == again._drawn[: 40 // SHARE]
    left = {*range(len(rows))} - {text for text, _ in chosen}
    assert loop.next(exclude=left).text is None
    assert {loop.next(exclude=left - {text}).text for text in left} == left


def test_what_is_doubted_comes_first(begin):
    known, strange = TEXTS[:20], [("Zyx Qwv foo Zork bar", []), ("It rains .", [])]
    loop = begin(rows=[*known, *strange])
    loop._set_apart, loop._drawn = set(), []
    annotate(loop, range(20), known)
    loop.wait()
    assert loop.next() == (20, "doubt") and loop.next({20}) == (21, "doubt")


def test_progress_is_of_texts_that_were_not_learnt(begin):
    """Of texts that nobody can know, F1 is low, though the model has learnt all of them by heart."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(64):
        word = f"w{i}{'abc'[i % 3]}"
        spans = [(0, len(word), LABELS[int(rng.integers(2))])]
        rows.append((f"{word} .", spans))
    loop = begin(rows=rows)
    for text in range(64):
        facts = {"given": True} if text % 2 else None
        loop.decide(text, rows[text][1], facts=facts)
    loop.wait(idle=True)
    progress = loop.progress()
    found, drawn = progress.estimate, [text for text in loop._drawn if text % 2 == 0]
    assert found.tested == len(drawn) >= 8
    assert found.low <= found.f <= found.high and found.f < 0.8
    assert [n for n, _ in found.curve] == [16, 32, 64] and found.more >= found.curve[-1][1] - 1e-9
    right = [spans_of(loop.readings(text).readings[0]) == rows[text][1] for text in range(64)]
    assert np.mean(right) > 0.9
    assert not progress.learning and progress.error is None


def test_settings_are_chosen_when_texts_have_doubled(begin, monkeypatch):
    rows = [(f"{text} {i}", spans) for i in range(2) for text, spans in TEXTS]
    loop, counts = begin(rows=rows), []
    choose = loop._models.choose
    monkeypatch.setattr(
        loop._models, "choose", lambda some: counts.append(len(some)) or choose(some)
    )
    for text in (18, 19, 20, 38, 39, 42):
        annotate(loop, range(text), rows)
        loop.wait(idle=True)
    assert counts == [20, 42]
    settings = loop._settings
    assert {*settings} == {"model", "trainer", "decoder"} and settings["trainer"]["sigma"] > 0
    config = loop.model.config["components"]["hocrf"]
    assert config["trainer"]["sigma"] == settings["trainer"]["sigma"]


def test_a_decision_does_not_wait_for_a_choice_of_settings(begin, monkeypatch):
    loop, begun, go_on = begin(), threading.Event(), threading.Event()
    choose = loop._models.choose

    def slow(examples):
        begun.set()
        go_on.wait()
        return choose(examples)

    monkeypatch.setattr(loop._models, "choose", slow)
    annotate(loop, range(20))
    assert begun.wait(60)
    version = loop.readings(23).version
    annotate(loop, [20])
    assert loop.wait(60) and loop.readings(23).version > version
    assert loop._model.settings == loop._models.first
    go_on.set()
    assert loop.wait(60, idle=True)
    chosen, decided = loop._model, [each.example for each in loop._decided.values()]
    assert chosen.settings == loop._settings != loop._models.first
    lengths = [
        np.linalg.norm(weights_of(pipe.model))
        for pipe in (
            chosen.pipe,
            *(loop._models.train(some, chosen.settings) for some in (decided, decided[:20])),
        )
    ]
    # it knows the decision that came meanwhile
    assert abs(lengths[0] - lengths[1]) < 0.3 * abs(lengths[0] - lengths[2])


def test_the_model_is_a_pipeline_that_can_be_saved_and_trained(begin, tmp_path):
    loop = begin()
    annotate(loop, range(20))
    nlp = loop.model
    nlp.to_disk(tmp_path / "model")
    doc = spacy.load(tmp_path / "model")(TEXTS[21][0])
    assert [(e.start_char, e.end_char, e.label_) for e in doc.ents] == TEXTS[21][1]
    assert nlp.config["components"]["hocrf"]["trainer"]["sigma"] != "auto"
    annotate(loop, range(20, 24))
    assert loop.model is nlp


def test_a_trained_pipeline_is_adapted(begin, tmp_path):
    first = begin()
    annotate(first, range(20))
    first.model.to_disk(tmp_path / "model")
    loop = begin(nlp=spacy.load(tmp_path / "model"))
    before = loop.readings(21)
    assert spans_of(before.readings[0]) == TEXTS[21][1] and before.version == 1
    span, *rest = TEXTS[22][1]
    changed = [(*span[:2], "PLACE" if span[2] == "PERSON" else "PERSON"), *rest]
    loop.decide(22, changed)
    loop.wait(idle=True)
    assert loop.readings(22).readings[0][1] < first.readings(22).readings[0][1]
    assert spans_of(loop.readings(21).readings[0]) == TEXTS[21][1]  # and has forgotten nothing
    loop.withdraw(22)
    loop.wait()
    assert loop.readings(21).readings == before.readings
    assert loop.model is not None


@pytest.mark.parametrize(
    "error, told, traced",
    [
        (RuntimeError("no memory"), "RuntimeError: no memory", True),
        (ValueError("[H041] Tokens 1 to 5"), "[H041] Tokens 1 to 5", False),
    ],
)
def test_errors_of_the_thread_are_told_and_the_next_decision_mends_them(
    begin, monkeypatch, caplog, error, told, traced
):
    loop = begin()
    annotate(loop, range(4))
    loop.wait(idle=True)
    known, train = loop.readings(5), loop._models.train

    def broken(*_, **__):
        raise error

    monkeypatch.setattr(loop._models, "train", broken)
    annotate(loop, [4])
    with pytest.raises(RuntimeError, match=re.escape(str(error))):
        loop.wait()
    assert loop.progress().error == told
    assert [told in record.message for record in caplog.records] == [True]
    assert ("Traceback" in caplog.text) == traced
    assert loop.readings(5) == known  # the last model is there
    monkeypatch.setattr(loop._models, "train", train)
    annotate(loop, [6])
    loop.wait()
    assert loop.progress().error is None and loop.readings(5).version > known.version


def test_who_asks_does_not_wait_for_what_is_learnt(begin, monkeypatch):
    loop, go_on, train = begin(), threading.Event(), None
    annotate(loop, range(4))
    loop.wait(idle=True)
    train = loop._models.train

    def slow(*arguments, **settings):
        go_on.wait()
        return train(*arguments, **settings)

    monkeypatch.setattr(loop._models, "train", slow)
    version = loop.readings(5).version
    annotate(loop, [4])
    assert loop.progress().learning and not loop.wait(0.01)
    assert loop.readings(5).version == version and loop.next().text is not None
    annotate(loop, [6])
    loop.withdraw(6)
    go_on.set()
    loop.wait()
    assert not loop.progress().learning and loop.readings(5).version > version


def test_tokens_are_those_of_the_docs(begin):
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf")
    docs = [
        Doc(nlp.vocab, words=["can't", "\n", "go"], spaces=[True, False, False]),
        Doc(nlp.vocab),
    ]
    loop = LabelLoop(nlp, docs, ["X"])
    loop.decide(0, [(0, 3, "X")])
    loop.decide(1, [])
    loop.wait()
    assert loop.readings(1).readings == [((), 1.0)]
    assert spans_of(loop.readings(0).readings[0]) == [(0, 5, "X")]
    loop.close()


def test_what_can_be_said_may_fail_and_the_model_is_there(begin, monkeypatch):
    def broken(*arguments):
        raise ValueError("no folds")
        yield

    monkeypatch.setattr("spacy_hocrf.cli.label.loop.estimates", broken)
    loop = begin()
    annotate(loop, range(4))
    assert loop.wait(idle=True) and loop.progress().error == "ValueError: no folds"
    assert loop.model is not None


def test_training_begins_near_the_model_before(begin):
    loop = begin()
    annotate(loop, range(20))
    loop.wait(idle=True)
    decided = [each.example for each in loop._decided.values()]
    train = partial(loop._models.train, settings=loop._settings)
    before = train(decided[:19])
    steps = [train(decided, near=near).run.evaluations for near in (None, before)]
    assert steps[1] <= steps[0] / 2


def test_a_trainer_without_an_optimum_is_replaced(begin):
    loop = begin(trainer={"@misc": "spacy-hocrf.SGD.v1"})
    annotate(loop, range(20))
    loop.wait()
    assert spans_of(loop.readings(21).readings[0]) == TEXTS[21][1]


def test_a_text_that_came_annotated_in_part_is_still_to_be_annotated(begin):
    loop, rows = begin(rows=TEXTS[:3]), TEXTS[:3]
    for text, (words, spans) in enumerate(rows):
        loop.decide(text, spans, [(len(words) - 1, len(words))][: text > 0], {"given": True})
    loop.wait()
    assert {loop.next().text, loop.next({1}).text, loop.next({2}).text} == {1, 2}
    annotate(loop, [1])
    loop.wait()
    assert loop.next().text == 2 and loop.next({2}).text is None
    loop.withdraw(1)
    assert loop.next({2}).text == 1
