"""`python -m spacy hocrf auto`: what it writes, that `spacy train` reproduces it, and how it fails."""

import re
import subprocess
import sys
from dataclasses import replace

import commands
import numpy as np
import pytest
import spacy
from browser import Browser
from pytest import approx
from small_corpus import ambiguous, documents, every_name, examples, found, learn_from
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from spacy.util import load_config
from srsly import read_json

import spacy_hocrf.cli  # noqa: F401 - adds the commands
from spacy_hocrf.annotation.best_readings import ScoredSpan
from spacy_hocrf.annotation.groups import set_group
from spacy_hocrf.annotation.weights import set_weight
from spacy_hocrf.cli.auto import command
from spacy_hocrf.cli.auto.command import MODEL, auto, default_settings
from spacy_hocrf.cli.auto.folds import Division, SettingsTrial, divide
from spacy_hocrf.cli.auto.page import page
from spacy_hocrf.cli.auto.reading import HeldOutPredictions, SpanTable, Subject
from spacy_hocrf.cli.auto.report import report
from spacy_hocrf.cli.auto.texts import AutoSetup, read_annotated
from spacy_hocrf.cli.checking import frame_of
from spacy_hocrf.cli.doubts import Doubt, ReadText
from spacy_hocrf.cli.options import BestAt
from spacy_hocrf.cli.pipelines import numbered_keys


def write(path, docs):
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    return path


def annotated(count=40, nlp=None):
    """Docs with names as entities and in `doc.spans["sc"]`; in one of them a place is a person."""
    nlp = nlp or spacy.blank("en")
    docs = [example.reference for example in examples(nlp, documents(count))]
    wrong = next(doc for doc in docs if doc.text.startswith("In Paris"))
    wrong.set_ents(
        [
            Span(wrong, e.start, e.end, "PERSON" if e.text == "Paris" else e.label)
            for e in wrong.ents
        ]
    )
    return docs


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The results, and the folder they are written to."""
    folder = tmp_path_factory.mktemp("auto")
    path = write(folder / "train.spacy", annotated())
    return auto(AutoSetup(path), folder / "out"), folder


def test_everything_is_written_and_nothing_else(run):
    results, folder = run
    assert sorted(path.name for path in folder.iterdir()) == ["out", "train.spacy"]
    names = ["config.cfg", "curve.json", MODEL, "report.html", "report.txt"]
    assert sorted(path.name for path in (folder / "out").iterdir()) == names
    assert (folder / "out" / "report.txt").read_text(encoding="utf8") == report(results)
    curve = read_json(folder / "out" / "curve.json")
    assert [point["f"] for point in curve["points"]][:-1] == approx(results.curve.f)
    assert curve["points"][-1]["texts"] == 2 * curve["now"] == 2 * results.curve.now
    assert curve["line"][-1] == approx([2 * curve["now"], results.curve.at(2 * curve["now"])])
    nlp = spacy.load(folder / "out" / MODEL)
    assert "| all |" in nlp.meta["notes"] and "### What it is" in nlp.meta["notes"]
    assert [ent.label_ for ent in nlp("Grace Hopper likes Paris").ents] == ["PERSON", "PLACE"]


def test_the_config_has_numbers_and_trains_the_same_model(run, tmp_path):
    _, folder = run
    path = folder / "out" / "config.cfg"
    config = load_config(path)
    component = config["components"]["hocrf"]
    assert isinstance(component["trainer"]["sigma"], float)
    assert isinstance(component["model"]["order"], int)
    assert component["decoder"].get("cost") != "auto"
    assert config["training"]["patience"] == 0
    command = [sys.executable, "-m", "spacy", "train", str(path), "--output", str(tmp_path)]
    # not in the folder of the sources, which Python would import instead of the installed package
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf8")
    assert done.returncode == 0, done.stdout + done.stderr
    texts = [text for text, _ in documents(60)]
    one, other = (spacy.load(each) for each in (folder / "out" / MODEL, tmp_path / "model-last"))
    for a, b in zip(one.pipe(texts), other.pipe(texts)):
        assert found(a) == found(b)
        assert [e._.hocrf_score for e in a.ents] == approx([e._.hocrf_score for e in b.ents])


def test_the_choice_is_the_same_on_every_run(run, tmp_path):
    results, folder = run
    again = auto(AutoSetup(folder / "train.spacy"), tmp_path / "out")
    assert report(again) == report(results)
    assert again.config == results.config
    other = auto(AutoSetup(folder / "train.spacy"), tmp_path / "other", seed=1)
    assert report(other) != report(results)


def test_of_a_large_corpus_the_model_is_that_of_the_default(run, tmp_path, monkeypatch):
    results, folder = run
    assert [str(trial)[:7] for trial in results.trials] == ["order 1", "order 3"]
    size = int(results.texts.lengths.sum()) * len(results.texts.labels)
    monkeypatch.setattr(command, "LARGE", size - 1)
    results = auto(AutoSetup(folder / "train.spacy"), tmp_path / "out")
    assert results.trials == (results.chosen,) and "Left out" not in report(results)
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf")
    learn_from(nlp, [Example(nlp.make_doc(doc.text), doc) for doc in annotated(nlp=nlp)])
    assert not nlp.get_pipe("hocrf").run.running
    texts = [text for text, _ in documents(60)]
    chosen = spacy.load(tmp_path / "out" / MODEL)
    assert [*map(found, chosen.pipe(texts))] == [*map(found, nlp.pipe(texts))]


@pytest.mark.parametrize(
    "loss, right, taken",
    [(0.9, 40, True), (0.9, 30, True), (0.9, 29, False), (0.99, 40, False), (1.1, 40, False)],
)
def test_the_default_stays_unless_loss_and_f1_are_better(loss, right, taken):
    default, other = trial(1.0, 30), trial(loss, right)
    for goal in BestAt:  # each text has one span here
        assert other.beats(default, goal) == taken


def trial(loss, right):
    """One that is right in so many of fifty texts with a span each."""
    text, none = np.arange(50), np.zeros(0, dtype=np.int64)
    hit, zero = text < right, np.zeros(50, dtype=np.int32)
    best = SpanTable(text, zero, zero + 1, zero, np.ones(50), hit)
    nothing = SpanTable(none, none, none, none, none.astype(float), none.astype(bool))
    ones = np.ones(50, dtype=np.int64)
    reading = HeldOutPredictions(ones.astype(bool), nothing, best, {}, ones[:, None], ones)
    return SettingsTrial(None, None, reading, 40, loss)


def test_the_report_says_what_was_left_out(run):
    results, _ = run
    (other,) = (trial for trial in results.trials if trial is not results.chosen)
    printed = " ".join(report(results).split())
    assert f"Left out: {other}. On the same texts its F1 is {100 * other.counts.f:.1f}" in printed


def test_the_wrong_annotation_is_doubted_most(run):
    results, _ = run
    degrees = [text.worst() for text in results.doubted]
    assert degrees == sorted(degrees, reverse=True) and min(degrees) >= 0.5
    text = results.doubted[0]
    assert "".join(text.words).startswith("In Paris")
    wrong, said = text.doubts[0].annotated, text.doubts[0].answer
    assert text.spell(wrong) == "Paris (PERSON)" and text.spell(said) == "Paris (PLACE)"
    assert said in text.found and wrong not in text.found
    p, q = said.probability, wrong.probability
    assert p > 0.5 > q and text.worst() == approx((p + 0.05) / (p + q + 0.1))
    assert "annotated  Paris (PERSON)" in report(results)


def test_the_page_stands_alone_and_escapes(tmp_path):
    nlp = spacy.blank("en")
    docs = annotated(nlp=nlp)
    for doc in docs:
        doc.set_ents([Span(doc, e.start, e.end, f"<b>{e.label_}&") for e in doc.ents])
    marked = nlp.make_doc("It rains <i> here .")
    marked.set_ents([])
    path = write(tmp_path / "a<i>.spacy", [*docs, marked])
    results = auto(AutoSetup(path), tmp_path / "out")
    label = results.texts.labels[0]
    spans = tuple(ScoredSpan(i, i + 1, label, 0.9) for i in (2, 4))
    doubts = tuple(Doubt(40, span, None, 0.0, 1.0) for span in spans)
    doubted = ReadText(40, tuple(results.texts.words(40)), spans, (), doubts)
    results = replace(results, doubted=(*results.doubted, doubted))
    text = page(results)
    assert all(re.search(f"<mark[^>]*>&{end};<small", text) for end in ("lt", "gt"))
    assert "<b>PERSON" not in text and "&lt;b&gt;PERSON&amp;" in text and "<i>" not in text
    assert not re.search(r"""(src|href)=|url\(|@import|<script""", text)
    body = text[text.index("<body") :]
    for tag in ("table", "div", "article", "mark", "p"):
        assert len(re.findall(rf"<{tag}[ >]", body)) == body.count(f"</{tag}>"), tag


@pytest.mark.parametrize("dark", [False, True])
def test_the_page_can_be_read_and_fits_a_phone(run, tmp_path, dark):
    results, _ = run
    results = replace(results, setup=replace(results.setup, lang="ar"))
    (tmp_path / "page.html").write_text(page(results), encoding="utf8")
    with Browser() as browser:
        browser.look(dark)
        browser.open(tmp_path / "page.html")
        assert browser.faults == [] and browser.width() == 1200
        found = browser.contrasts()
        assert len(found) > 30 and found[0][0] >= 4.5, found[:5]
        browser.narrow(360)
        browser.open(tmp_path / "page.html")
        assert browser.width() == 360
        tables = "[...document.querySelectorAll('.scroll')].map(x => x.scrollWidth - x.clientWidth)"
        assert browser.run(tables) == [0]  # nothing has to be moved sideways
        assert browser.run("document.documentElement.lang") == "ar"
        texts = "[...document.querySelectorAll('article [dir=auto]:not(small)')].map(x => x.lang)"
        assert {*browser.run(texts)} == {"ar"}
        assert browser.run("document.querySelector('h2').closest('[lang]').lang") == "en"


def test_spans_are_learnt_from_their_key(tmp_path):
    path = write(tmp_path / "train.spacy", annotated())
    auto(AutoSetup(path, "xx", "sc"), tmp_path / "out")
    nlp = spacy.load(tmp_path / "out" / MODEL)
    assert nlp.lang == "xx" and nlp.pipe_names == ["hocrf_spans"]
    doc = nlp("Emmy likes Paris")
    assert [span.label_ for span in doc.spans["sc"]] == ["PERSON", "PLACE"]
    weights = load_config(tmp_path / "out" / "config.cfg")["training"]["score_weights"]
    assert weights == {"spans_sc_f": 1.0}


def test_tokens_of_the_annotation_are_taken_where_the_tokenizer_loses_spans(tmp_path):
    nlp = spacy.blank("en")
    docs = []
    for i in range(30):
        spaces = [True, True, False, False, True]
        doc = Doc(nlp.vocab, words=["In", f"Paris{i}", "A", "B", f"x{i}"], spaces=spaces)
        doc.set_ents([Span(doc, 2, 3, "LETTER")])
        docs.append(doc)
    setup = AutoSetup(write(tmp_path / "train.spacy", docs))
    texts = read_annotated(setup, setup.blank())
    assert texts.gold_tokens and texts.gold[0] == {("LETTER", 2, 3)}
    assert "30 of 30 annotated spans do not fit" in texts.notes[0]


def test_copies_and_partial_annotation(tmp_path):
    nlp = spacy.blank("en")
    docs = annotated(nlp=nlp)
    partial, empty = nlp.make_doc("Emmy saw Ada ."), nlp.make_doc("Nothing is known .")
    partial.set_ents([Span(partial, 0, 1, "PERSON")], default="missing")
    setup = AutoSetup(write(tmp_path / "train.spacy", [*docs, docs[0], partial, empty]))
    texts = read_annotated(setup, setup.blank())
    assert len(texts) == 41 and texts.complete.sum() == 40 and len(texts.examples) == 43
    assert texts.counts.sum() == sum(len(doc.ents) for doc in docs) + 1
    notes = " ".join(texts.notes)
    assert "1 of 43 texts have no annotation" in notes and "1 of 43 texts are copies" in notes
    assert "1 of 41 texts are annotated in part" in notes


def test_texts_of_which_constraints_tell_something_are_learnt_from(tmp_path):
    nlp = spacy.blank("en")
    docs, more = annotated(nlp=nlp), [nlp.make_doc("Emmy saw Ada .") for _ in range(2)]
    for doc, kind in zip(more, ("inside", "not")):
        doc.spans["hocrf_constraints"] = [Span(doc, 0, 1, "PERSON", span_id=kind)]
    setup = AutoSetup(write(tmp_path / "train.spacy", [*docs, *more]))
    texts = read_annotated(setup, setup.blank())
    assert len(texts) == 42 and texts.complete.sum() == 40
    assert "2 of 42 texts are annotated in part" in " ".join(texts.notes)
    results = auto(setup, tmp_path / "out")
    assert results.scores[0].gold == sum(len(doc.ents) for doc in docs)


@pytest.mark.parametrize("end", ["", "\n", " \n"])
def test_spans_that_overlap_count_as_missed(tmp_path, end):
    """Also where texts have white space among their tokens, which alignment does not know."""
    docs = annotated()
    if end:
        nlp = spacy.blank("en")
        docs, plain = [nlp.make_doc(doc.text + end) for doc in docs], docs
        for doc, old in zip(docs, plain):
            spans = old.spans["sc"]
            doc.spans["sc"] = [Span(doc, span.start, span.end, span.label_) for span in spans]
    for doc in docs[:-1]:
        span = doc.spans["sc"][0]
        doc.spans["sc"].append(Span(doc, span.start, span.start + 1, "FIRST"))
    setup = AutoSetup(write(tmp_path / "train.spacy", docs), spans_key="sc")
    texts = read_annotated(setup, setup.blank())
    assert "overlap longer ones" in " ".join(texts.notes)
    assert texts.counts.sum() == sum(
        len({(s.start, s.end, s.label) for s in doc.spans["sc"]}) for doc in docs
    )
    results = auto(setup, tmp_path / "out")  # without a warning from every model
    assert results.scores[0].gold == texts.counts.sum()


@pytest.mark.parametrize(
    "texts, sample, folds",
    [
        (20, 20, 5),
        (300, 300, 5),
        (1000, 1000, 5),
        (1600, 1600, 5),
        (2000, 2000, 3),
        (9000, 2000, 3),
    ],
)
def test_enough_is_held_back_and_of_many_texts_some(texts, sample, folds):
    every = np.arange(texts)
    division = divide(every >= 0, every, seed=0)
    sides = list(division)
    assert len(division.sample) == sample and len(sides) == folds
    held = np.concatenate([some for _, some in sides])
    assert len({*held.tolist()}) == len(held) >= min(1000, texts)
    for learnt, some in sides:
        assert sorted([*learnt, *some]) == sorted(division.sample)


def test_a_model_for_whole_texts_shows_the_best_reading(tmp_path):
    path = write(tmp_path / "train.spacy", annotated())
    done = commands.run("auto", path, tmp_path / "out", "--for", "texts")
    component = load_config(tmp_path / "out" / "config.cfg")["components"]["hocrf"]
    assert component["decoder"] == {"@misc": "spacy-hocrf.Reranked.v1", "n": 10}
    (whole,) = re.findall(r"Texts right as a whole: ([\d.]+) % of 40 held back", done)
    assert float(whole) / 100 == approx(round(float(whole) * 0.4) / 40, abs=1e-3)
    commands.run("auto", "x", "y", "--for", "speed", code=2)


def test_a_division_holds_every_text_back_once():
    division = Division(np.arange(10, 33), np.arange(23), np.array([1, 2]), 5)
    assert sorted(np.concatenate([held for _, held in division])) == list(range(10, 33))
    for learnt, back in division:
        assert sorted([*learnt, *back]) == [1, 2, *range(10, 33)]


@pytest.mark.parametrize(
    "texts, groups",
    [
        # the same but for names and numbers
        ([("Ada lives in Paris", [(0, 1)]), ("Max Born lives in Rome", [(0, 2)])], 1),
        ([("on 3 May 1843 it rained", []), ("on 12 June 1900 it rained", [])], 1),
        ([("ada lives in paris", [(0, 1), (3, 4)]), ("max lives in rome", [(0, 1), (3, 4)])], 1),
        ([("Ada lives in Paris", []), ("Ada works in Paris", [])], 2),
        # nothing but names and numbers is like nothing else
        ([("12 Main St Boise", [(0, 4)]), ("7 Elm St Dover", [(0, 4)])], 2),
        (
            [("A. Smith . On parsing . 1998", [(0, 2), (3, 5), (6, 7)])] * 1
            + [("B. Jones . On tagging . 1999", [(0, 2), (3, 5), (6, 7)])],
            2,
        ),
        ([("", []), ("", [])], 2),
    ],
)
def test_near_copies_are_equal_but_for_names_and_numbers(texts, groups):
    frames = [frame_of(text.split(), spans) for text, spans in texts]
    assert len(set(numbered_keys(frames).tolist())) == groups


def made_from(frames, number):
    """Texts made from a few by other names."""
    nlp = spacy.blank("en")
    docs = []
    for i in range(number):
        words = f"N{i} X{i % 7} {frames[i % len(frames)]} P{i}".split()
        doc = Doc(nlp.vocab, words=words)
        doc.set_ents([Span(doc, 0, 2, "PERSON"), Span(doc, len(words) - 1, len(words), "PLACE")])
        docs.append(doc)
    return docs


@pytest.mark.parametrize("many, kept", [(12, True), (2, False)])
def test_the_report_tells_of_near_copies(tmp_path, many, kept):
    frames = [
        f"{verb} slowly by {way}"
        for verb in "went came ran".split()
        for way in "car bus sea air".split()
    ]
    DocBin(docs=made_from(frames[:many], 48)).to_disk(tmp_path / "train.spacy")
    setup = AutoSetup(tmp_path / "train.spacy")
    texts = read_annotated(setup, setup.blank())
    assert any(f"{48 - many} of 48 texts are near copies" in note for note in texts.notes)
    assert len(set(texts.groups.tolist())) == (many if kept else 48)


@pytest.mark.parametrize("groups, code", [(24, None), (3, "H156.*3 texts")])
def test_texts_of_a_group_are_scored_by_models_that_have_seen_none_of_it(tmp_path, groups, code):
    docs = made_from(["went slowly", "came by car"], 48)
    for i, doc in enumerate(docs):
        set_group(doc, i % groups)
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "train.spacy")
    setup = AutoSetup(tmp_path / "train.spacy", group_by="hocrf_group")
    if code is not None:
        with pytest.raises(ValueError, match=code):
            read_annotated(setup, setup.blank())
        return
    texts = read_annotated(setup, setup.blank())
    assert texts.groups.tolist() == [*range(groups)] * 2
    assert any(
        "48 texts are of 24 groups (group_by = 'hocrf_group')" in note for note in texts.notes
    )
    every = np.arange(48)
    for learnt, held in Division(every, texts.groups, every[:0], 5):
        assert not {*texts.groups[learnt]} & {*texts.groups[held]} and len(learnt) + len(held) == 48
    assert default_settings(setup, setup.blank())["group_by"] == "hocrf_group"


def test_sigma_is_chosen_by_groups_held_back(tmp_path):
    """As the component with this `group_by` chooses them; three texts of a group differ in a word."""
    docs = []
    for group, (text, spans) in enumerate(ambiguous(24)):
        for note in "abc":
            doc = spacy.blank("en")(f"{text} {note}")
            doc.set_ents([doc.char_span(*span) for span in spans])
            set_group(doc, group)
            docs.append(doc)
    copy = docs[0].copy()  # of another group
    set_group(copy, 1)
    setup = AutoSetup(write(tmp_path / "train.spacy", [*docs, copy]), group_by="hocrf_group")
    nlp = setup.blank()
    texts = read_annotated(setup, nlp)
    assert len(texts) == 73
    settings = default_settings(setup, nlp)
    settings["model"]["order"] = 1
    pipe = nlp.add_pipe("hocrf", config=settings)
    pipe.initialize(lambda: texts.examples)
    chosen = Subject(settings, setup, texts, nlp).chosen(None)
    assert chosen["trainer"]["sigma"] == pipe.choice.sigma < 10  # by texts held back it is 10


def test_what_teachers_say_is_learnt_and_not_scored(tmp_path):
    nlp = spacy.blank("en")
    docs = annotated(24, nlp)
    for example in examples(nlp, every_name(20)):
        doc = Doc(nlp.vocab, words=[token.text for token in example.reference])
        doc.set_ents([], default="missing")
        doc.spans["llm"] = [Span(doc, e.start, e.end, "NAME") for e in example.reference.ents]
        docs.append(doc)
    path = write(tmp_path / "train.spacy", docs)
    for options, labels, note in (
        ([], ["PERSON", "PLACE"], "20 of 44 texts have no annotation at all and are left out."),
        (["--teachers", "llm"], ["NAME", "PERSON", "PLACE"], "20 of 44 texts are not annotated"),
    ):
        output = tmp_path / f"out{len(options)}"
        done = commands.run("auto", path, output, *options)
        assert f"Note: {note}" in done
        assert "24 texts with" in " ".join(done.split())  # the measurement rests on these
        pipe = spacy.load(output / MODEL).get_pipe("hocrf")
        assert [*pipe.labels] == labels
        component = load_config(output / "config.cfg")["components"]["hocrf"]
        assert component["teachers"] == options[1:]
    texts = read_annotated(AutoSetup(path, teachers=("llm",)), nlp)
    assert len(texts) == 44 and texts.complete.tolist() == [True] * 24 + [False] * 20
    assert not any(texts.gold[24:])


def test_texts_of_weight_0_are_left_out(tmp_path):
    docs = annotated(30)
    for doc in docs[:5]:
        set_weight(doc, 0)
    setup = AutoSetup(write(tmp_path / "train.spacy", docs))
    nlp = setup.blank()
    texts = read_annotated(setup, nlp)
    assert len(texts) == len(texts.examples) == 25
    settings = default_settings(setup, nlp)
    settings["model"]["order"], settings["trainer"]["sigma"] = 1, 2.0
    Subject(settings, setup, texts, nlp)  # its corpus has the same texts


def few_texts():
    return annotated(10)


def partly_annotated():
    docs = annotated(30)
    for doc in docs[7:]:
        outside = next(token.i for token in doc if not token.ent_type)
        doc.set_ents(doc.ents, missing=[doc[outside : outside + 1]], default="outside")
    return docs


def without_annotation():
    nlp = spacy.blank("en")
    return [nlp.make_doc(f"Text {i} .") for i in range(30)]


def of_weight_0():
    docs = annotated(30)
    for doc in docs:
        set_weight(doc, 0)
    return docs


def one_text_with_all_labels():
    docs = without_annotation()
    for doc in docs:
        doc.set_ents([])
    docs[3].set_ents([Span(docs[3], 0, 1, "A"), Span(docs[3], 1, 2, "B")])
    return docs


@pytest.mark.parametrize(
    "docs, options, code, words",
    [
        (few_texts, [], "H156", "at least 20"),
        (partly_annotated, [], "H156", "23 others are annotated in part"),
        (
            lambda: few_texts() * 3,
            [],
            "H156",
            "10 texts, equal ones and those of a group counted once,",
        ),
        (without_annotation, [], "H153", "doc.ents"),
        (of_weight_0, [], "H255", "All 30 training texts"),
        (one_text_with_all_labels, [], "H155", "2 labels"),
        (annotated, ["--spans-key", "no"], "H154", "There are: sc"),
        (annotated, ["--lang", "zz"], "H159", "'zz'"),
        (annotated, ["here"], "H157", "--force"),
        (list, [], "H158", "train.spacy"),
        (None, [], "H257", "train.spacy"),
    ],
)
def test_wrong_use_is_explained_and_leaves_nothing(tmp_path, docs, options, code, words):
    path = tmp_path / "train.spacy"
    write(path, docs()) if docs else path.write_bytes(b"none")
    output = tmp_path / "out"
    if options == ["here"]:
        options = []
        output.mkdir()
        (output / "mine").write_text("precious", encoding="utf8")
    before = sorted(tmp_path.rglob("*"))
    done = commands.run("auto", path, output, *options, code=1)
    assert f"[{code}]" in done
    assert words in " ".join(done.split())
    assert sorted(tmp_path.rglob("*")) == before
