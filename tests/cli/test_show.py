"""The page of a model and its texts: what is on it, and what a browser makes of it."""

import json
import re
from math import exp

import commands
import numpy as np
import pytest
import spacy
import srsly
from browser import Browser
from numpy.testing import assert_allclose
from small_corpus import documents, examples, learn_from, teach, trained, untrained
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example

from spacy_hocrf.annotation.acceptance import Acceptance
from spacy_hocrf.annotation.identity import set_identity
from spacy_hocrf.annotation.readers import predicted_of
from spacy_hocrf.answers import pages
from spacy_hocrf.answers.pages import MIN_UNFOUND, N_REASONS
from spacy_hocrf.answers.reading import Reading
from spacy_hocrf.cli.auto.estimates import Curve, Interval
from spacy_hocrf.cli.auto.page import curve_numbers
from spacy_hocrf.cli.show import show

UNKNOWN, WRONG, RIGHT, MISSED = -1, 0, 1, 2
EVIL = "</script><b>&amp;{{data}}"


@pytest.fixture(scope="module")
def nlp():
    """A pipeline that has learnt a little."""
    nlp = trained(decoder={"@misc": "spacy-hocrf.ExpectedF.v1", "cost": 0.25}, steps=8)
    return nlp


@pytest.fixture(scope="module")
def docs(nlp):
    """Annotated texts: the first has a wrong label and one span too many, the last an evil word."""
    found = [example.reference for example in examples(nlp)]
    doc = found[0]
    first, *rest = doc.ents
    label = "PLACE" if first.label_ == "PERSON" else "PERSON"
    wrong = [Span(doc, first.start, first.end, label), Span(doc, 3, 4, "ALIEN")]
    doc.ents = [*wrong, *rest]
    words = ["Nobody", "but", "Ada", "Lovelace", "likes", EVIL]
    evil = Doc(nlp.vocab, words=words)
    evil.ents = [Span(evil, 2, 4, label="PERSON")]
    return [*found, evil]


def data_of(page):
    """The data that a page has, and its bare text."""
    (found,) = re.findall(r'<script type="application/json" id="data">(.*)</script>', page)
    return json.loads(found)


def test_the_page_has_what_is_found_and_what_is_annotated(nlp, docs):
    data = data_of(show(nlp, docs))
    predicted = list(nlp.pipe(Doc(nlp.vocab, words=[t.text for t in doc]) for doc in docs))
    assert data["labels"] == [*nlp.get_pipe("hocrf").labels, "ALIEN"]
    assert len(data["texts"]) == len(docs)
    for text, doc, gold in zip(data["texts"], predicted, docs, strict=True):
        assert text["words"] == [token.text_with_ws for token in gold]
        found = [(data["labels"].index(e.label_), e.start, e.end) for e in doc.ents]
        wanted = [(data["labels"].index(e.label_), e.start, e.end) for e in gold.ents]
        assert [(y, i, j) for i, j, y, *_ in text["spans"]] == found
        assert [(y, i, j) for i, j, y, *_ in text["gold"]] == wanted
        for (i, j, y, p, verdict, why), ent in zip(text["spans"], doc.ents):
            assert p == pytest.approx(ent._.hocrf_score, abs=1e-4)
            assert verdict == (RIGHT if (y, i, j) in wanted else WRONG)
            assert why["odds"] > -1 and len(why["top"]) <= N_REASONS
        for i, j, y, _, verdict, why in text["gold"]:
            assert verdict == (RIGHT if (y, i, j) in found else MISSED)
            assert (why is None) == (verdict == RIGHT)
    (alien,) = (span for span in data["texts"][0]["gold"] if data["labels"][span[2]] == "ALIEN")
    assert alien[3:] == [0.0, MISSED, {"refused": "impossible"}]


def test_the_numbers_of_a_text_are_those_of_its_reading(nlp, docs):
    data = data_of(show(nlp, docs))
    pipe = nlp.get_pipe("hocrf")
    for text, doc in zip(data["texts"], docs):
        reading = pipe.reading(predicted_of(nlp, doc, gold_preproc=True))
        named = [(i, j, data["labels"][y]) for i, j, y, *_ in text["spans"]]
        assert text["sure"] == pytest.approx(exp(reading.log_probability(named)), rel=1e-3)
        others = {(i, j, data["labels"][y]) for i, j, y, _ in text["others"]}
        assert others == {span[:3] for span in reading.spans(data["least"])} - {*named}
        for row, chances in zip(text["heat"], reading.tokens(), strict=True):
            shown = dict(zip(row[::2], row[1::2]))
            every = [shown.get(y, 0) / 1000 for y in (*range(len(reading.labels)), -1)]
            assert_allclose(every, chances, atol=0.0051)
        for i, j, y, _, _, why in text["spans"]:
            found = reading.explain((i, j, data["labels"][y]))
            rest = 0.0 if why["rest"] is None else why["rest"]
            total = sum(value for _, value in why["top"]) + rest
            assert total == pytest.approx(found.log_odds, abs=1e-3)
            assert why["odds"] == pytest.approx(found.log_odds, abs=1e-4)
            named = sum(value for _, value in why["words"])
            assert named + why["others"] + why["beside"] == pytest.approx(found.log_odds, abs=1e-3)
            assert all(
                found.words[t] == pytest.approx(value, abs=1e-4) for t, value in why["words"]
            )


def long_doc(nlp, times):
    """An annotated text of so many sentences."""
    return Doc.from_docs([example.reference for example in examples(nlp)[:3]] * times)


def test_reasons_of_a_long_text_are_given_for_the_least_sure_spans(nlp, monkeypatch):
    doc = long_doc(nlp, 10)
    (full,) = data_of(show(nlp, [doc]))["texts"]
    calls, explain = [], Reading.explain
    monkeypatch.setattr(
        Reading, "explain", lambda self, span: calls.append(span) or explain(self, span)
    )
    monkeypatch.setattr(pages, "MAX_TOKENS_READ", 7 * len(doc) + 1)
    (text,) = data_of(show(nlp, [doc]))["texts"]
    assert len(calls) == 7
    given, left = [], []
    for name in ("spans", "gold", "perhaps"):
        for row, known in zip(text[name], full[name], strict=True):
            assert row[:5] == known[:5]
            if row[5] == {"refused": "long"}:
                left.append(row[3])
            else:
                assert row[5] == known[5]
                given += [row[3]] if row[5] is not None else []
    assert len(given) == 7 and left and max(given) <= min(left)


def test_probabilities_of_annotated_spans_need_no_more_passes_in_a_longer_text(nlp, monkeypatch):
    calls, score = [], Reading._scores
    monkeypatch.setattr(
        Reading, "_scores", lambda self, spans: calls.append(spans) or score(self, spans)
    )
    monkeypatch.setattr(pages, "MAX_TOKENS_READ", 1)

    def passes(times):
        calls.clear()
        show(nlp, [long_doc(nlp, times)])
        return len(calls)

    assert 0 < passes(5) == passes(20)


def test_what_is_possible_is_marked_as_in_a_search_through_all_spans():
    rng = np.random.default_rng(0)
    for _ in range(50):
        start = rng.integers(0, 30, 40)
        end = start + rng.integers(1, 4, 40)
        p = rng.random(40).round(3)
        spans = [*zip(start.tolist(), end.tolist(), ["A"] * 40, p.tolist())]
        shown, others = spans[:5], spans[5:]
        taken, found = [span[:2] for span in shown], []
        for span in sorted(others, key=lambda span: -span[3]):
            apart = all(b <= span[0] or span[1] <= a for a, b in taken)
            if span[3] >= MIN_UNFOUND and apart:
                taken.append(span[:2])
                found.append(span)
        assert pages._perhaps(others, shown) == sorted(found)


def test_scores_and_bins_are_those_of_all_texts(nlp, docs):
    data = data_of(show(nlp, docs))
    spans = [span for text in data["texts"] for span in text["spans"]]
    gold = [span for text in data["texts"] for span in text["gold"]]
    right = sum(span[4] == RIGHT for span in spans)
    assert data["gold"] and len(data["scores"]) == 1 + len(data["labels"])
    assert data["scores"][0] == {
        "found": len(spans),
        "annotated": len(gold),
        "right": right,
        "precision": right / len(spans),
        "recall": right / len(gold),
        "f": 2 * right / (len(spans) + len(gold)),
    }
    assert sum(score["found"] for score in data["scores"][1:]) == len(spans)
    assert sum(row["spans"] for row in data["bins"]) >= len(spans)


def test_texts_that_say_nothing_are_shown_without_a_verdict(nlp, docs):
    bare = [Doc(nlp.vocab, words=[t.text for t in doc]) for doc in docs]
    data = data_of(show(nlp, bare))
    assert not data["gold"] and data["bins"] == []
    assert all(text["gold"] is None for text in data["texts"])
    assert {span[4] for text in data["texts"] for span in text["spans"]} == {UNKNOWN}
    one = data_of(show(nlp, [docs[1], bare[2]]))
    assert [text["gold"] is None for text in one["texts"]] == [False, True]


def test_only_the_texts_that_it_is_least_sure_of(nlp, docs):
    every, some = data_of(show(nlp, docs)), show(nlp, docs, most=3, about="here")
    surest = sorted(text["sure"] for text in every["texts"])
    assert sorted(text["sure"] for text in data_of(some)["texts"]) == surest[:3]
    assert "here · the 3 of 11 texts that the model is least sure of" in some
    assert data_of(some)["scores"] == every["scores"]


def test_tags_are_shown():
    nlp = trained("hocrf_tagger")
    data = data_of(show(nlp, [example.reference for example in examples(nlp)][:2]))
    text = data["texts"][0]
    assert [span[:2] for span in text["spans"]] == [[i, i + 1] for i in range(len(text["words"]))]
    assert {span[4] for span in text["spans"]} == {RIGHT}


def test_overlapping_spans_and_too_much_white_space_are_shown():
    model = {"encoding": "bio"}
    nlp = untrained("hocrf_spans", model, select="all", threshold=0.02)
    data = teach(nlp, steps=3)
    words = documents()[0][0].replace(" ", 12 * "\n").split(" ")
    text = data_of(show(nlp, [Doc(nlp.vocab, words=words), data[0].reference]))["texts"][1]
    ends = [span[1] for span in text["spans"]]
    assert any(end > span[0] for end, span in zip(ends, text["spans"][1:]))
    assert text["sure"] == min(span[3] for span in text["spans"])


def test_where_every_token_is_in_a_span_it_is_not_sure_of_a_text_that_it_leaves_gaps_in():
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("hocrf", config={"model": {"order": 1}, "trainer": {"sigma": 1.0}})
    data = []
    for words in ("12 Abbey Road London", "7 Elm Street Leeds", "9 Church Lane New York"):
        doc = nlp.make_doc(words)
        doc.ents = [
            Span(doc, 0, 1, "NUMBER"),
            Span(doc, 1, 3, "STREET"),
            Span(doc, 3, len(doc), "CITY"),
        ]
        data.append(Example(nlp.make_doc(words), doc))
    learn_from(nlp, data)
    assert not pipe.run.running
    doc = nlp.make_doc("4 The Old Market Mews Market Harborough")
    (text,) = data_of(show(nlp, [doc]))["texts"]
    assert sum(span[1] - span[0] for span in text["spans"]) < len(doc)
    (best,) = pipe.reading(doc).best(1)
    assert text["sure"] == pytest.approx(best.probability, rel=1e-3)
    assert text["sure"] < min(span[3] for span in text["spans"])


def test_what_is_possible_is_marked_where_nothing_is_found(nlp, browser, tmp_path):
    reading = nlp.get_pipe("hocrf").reading(nlp.make_doc("In Ada , Hopper saw Lovelace Paris"))
    every = reading.spans(MIN_UNFOUND)
    least = sorted(span.probability for span in every)[-1]
    text = data_of(reading.to_html(at_least=least))["texts"][0]
    (shown,) = text["spans"]
    assert len(text["perhaps"]) > 0
    taken = [*range(*shown[:2])]
    for start, end, label, p, verdict, why in sorted(text["perhaps"], key=lambda row: -row[3]):
        best = max(
            span.probability
            for span in every
            if not {*range(span.start, span.end)} & {*taken} and span.probability < least
        )
        assert p == pytest.approx(best, abs=1e-4)
        assert p == pytest.approx(reading.probability(start, end, reading.labels[label]), abs=1e-4)
        assert verdict == UNKNOWN and why["top"]
        taken += range(start, end)
    path = tmp_path / "page.html"
    path.write_text(reading.to_html(at_least=least), encoding="utf8")
    browser.open(path)
    assert all("? " in words for words in texts(browser, ".perhaps small"))
    browser.run("document.querySelector('.perhaps').click()")
    assert "too little to say so" in texts(browser, ".details")[0]


# In a browser


@pytest.fixture(scope="module")
def browser():
    with Browser() as found:
        yield found


@pytest.fixture(scope="module")
def page(nlp, docs, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(show(nlp, docs, title=f"Texts {EVIL}"), encoding="utf8")
    return path


@pytest.fixture
def opened(browser, page):
    browser.faults.clear()
    browser.open(page)
    return browser


def texts(browser, selector):
    return browser.run(
        f"[...document.querySelectorAll({json.dumps(selector)})].map(x => x.textContent)"
    )


def test_it_opens_without_a_fault_and_asks_for_nothing(opened, docs):
    assert opened.faults == []
    assert opened.run("performance.getEntriesByType('resource').length") == 0
    assert texts(opened, "h1") == [f"Texts {EVIL}"]
    assert len(texts(opened, "article")) == len(docs)
    assert texts(opened, "#count") == ["11 of 11 texts"]
    assert opened.run("document.querySelectorAll('svg circle').length") > 0
    shown = [float(re.search(r"([\d.]+) % sure", text)[1]) for text in texts(opened, "h2 + .soft")]
    assert len(shown) == len(docs)
    assert shown == sorted(shown)


def test_words_of_texts_are_never_markup(opened):
    assert sum(EVIL in text for text in texts(opened, "article")) == 1
    assert opened.run("document.querySelectorAll('article b, #texts script').length") == 0


def test_a_click_shows_alternatives_words_and_reasons(opened):
    click = "document.querySelector('article .span.wrong').click()"
    opened.run(click)
    (details,) = texts(opened, ".details")
    assert "It is not annotated." in details
    assert "What it could be" in details and re.search(r"rather than (nothing|\w+ “.+”)\?", details)
    assert re.search(r"[+−]\d+\.\d\d", details) and "together" in details
    words = texts(opened, ".details .heat thead th")
    assert words and set(words) <= {
        w for t in texts(opened, "article") for w in re.split(r"\W+", t)
    } | {".", ","}
    opened.run("document.querySelector('.details button').click()")
    assert texts(opened, ".details") == []


def test_texts_of_any_script(browser, nlp, tmp_path):
    doc = Doc(nlp.vocab, words=["Ada", "\u200d", "likes", "Ko\u0308ln", "\ufe0f"])
    (tmp_path / "page.html").write_text(
        show(nlp, [doc, nlp("Max")], title="Texts"), encoding="utf8"
    )
    browser.open(tmp_path / "page.html")
    browser.run("document.querySelector('article .span').click()")
    assert texts(browser, ".details .top [dir=auto]")[0] in nlp.get_pipe("hocrf").labels
    seen = texts(browser, ".details .heat thead th")
    assert seen[:2] == ["Ada", "U+200D"] and "\u200d" not in seen
    for words, found in (("K\u00d6LN", 1), ("Ko\u0308ln", 1), ("Kolm", 0)):
        choose(browser, "words", words)
        assert len(texts(browser, "article")) == found


def test_keys_do_what_clicks_do(opened):
    focus = "document.querySelectorAll('article [role=button]')[2].focus()"
    state = "document.activeElement.getAttribute('aria-expanded')"
    opened.run(focus)
    opened.press("Enter", 13, "\r")
    assert len(texts(opened, ".details")) == 1 and opened.run(state) == "true"
    panel = opened.run("document.activeElement.getAttribute('aria-controls')")
    assert len(texts(opened, f"#{panel} .details")) == 1
    opened.press("Enter", 13, "\r")
    assert texts(opened, ".details") == []
    opened.press(" ", 32, " ")
    opened.run("document.querySelector('.details button').focus()")
    opened.press("Escape", 27)
    assert texts(opened, ".details") == [] and opened.run(state) == "false"


def choose(browser, name, value):
    browser.run(
        f"(() => {{const field = document.querySelector('[name={name}]'); field.value = '{value}';"
        "for (const kind of ['change', 'input']) field.dispatchEvent(new Event(kind))})()"
    )


def accepting(nlp, docs):
    """A page of a model that accepts some texts, and what it says of each when it predicts."""
    pipe = nlp.get_pipe("hocrf")

    def read(**settings):
        pipe.acceptance = Acceptance(level=0.9, confidence=0.9, texts=10, accepted=10, **settings)
        words = [[token.text for token in doc] for doc in docs]
        return list(nlp.pipe(Doc(nlp.vocab, words=each) for each in words))

    chances = sorted(doc._.hocrf_probability for doc in read(threshold=0.0))
    found = read(threshold=chances[4], slope=0.5)
    page = show(nlp, docs)
    pipe.acceptance = None
    return page, [(doc._.hocrf_accepted, doc._.hocrf_probability) for doc in found]


def test_it_says_which_texts_need_nobody_to_read_them(nlp, docs):
    page, expected = accepting(nlp, docs)
    found = [(text["accepted"], text["sure"]) for text in data_of(page)["texts"]]
    assert [each[0] for each in found] == [each[0] for each in expected]
    assert 0 < sum(each[0] for each in found) < len(docs)
    assert [each[1] for each in found] == pytest.approx([each[1] for each in expected], rel=1e-3)
    assert not any("accepted" in text for text in data_of(show(nlp, docs))["texts"])


def test_texts_are_chosen_by_whether_somebody_must_read_them(browser, nlp, docs, tmp_path):
    page, expected = accepting(nlp, docs)
    (tmp_path / "page.html").write_text(page, encoding="utf8")
    browser.open(tmp_path / "page.html")
    accepted = sum(each[0] for each in expected)
    for name, said, count in (
        ("accepted", "accepted unread", accepted),
        ("other", "to be read", len(docs) - accepted),
    ):
        choose(browser, "read", name)
        heads = texts(browser, "article .head")
        assert len(heads) == count and all(said in head for head in heads)
    choose(browser, "read", "all")
    assert len(texts(browser, "article")) == len(docs)
    (tmp_path / "plain.html").write_text(show(nlp, docs), encoding="utf8")
    browser.open(tmp_path / "plain.html")
    assert browser.run("document.querySelector('select[name=read]')") is None


def test_texts_are_chosen_by_errors_label_and_words(opened, docs):
    choose(opened, "texts", "errors")
    wrong = len(texts(opened, "article"))
    assert 1 <= wrong < len(docs)
    assert texts(opened, "#count") == [f"{wrong} of 11 texts"]
    assert all("error" in text for text in texts(opened, "article"))
    choose(opened, "label", "2")  # ALIEN
    assert len(texts(opened, "article")) == 1
    choose(opened, "texts", "right")
    choose(opened, "label", "-1")
    assert len(texts(opened, "article")) == len(docs) - wrong
    choose(opened, "texts", "all")
    choose(opened, "words", "</SCRIPT>")
    assert len(texts(opened, "article")) == 1
    choose(opened, "words", "")
    choose(opened, "order", "file")
    assert texts(opened, "article h2")[:2] == ["Text 1", "Text 2"]


def test_it_is_light_or_dark_as_one_likes(opened):
    paper = "getComputedStyle(document.body).backgroundColor"
    found = []
    for dark in (False, True):
        opened.look(dark)
        found.append(sum(map(int, re.findall(r"\d+", opened.run(paper)))))
    assert found[0] > 700 and found[1] < 120


@pytest.mark.parametrize("dark", [False, True])
def test_all_text_can_be_read_in_every_hue(opened, dark):
    """Contrast 4.5 (WCAG 2, AA), of any label and any probability; 1.16 is what a pointer above it adds."""
    opened.look(dark)
    opened.run("document.querySelector('article .span.wrong').click()")
    for turn in range(12):
        opened.run(
            f"""document.querySelectorAll("[style*='--hue']").forEach((node, i) => {{
            node.style.setProperty("--hue", (30 * i + 7 * {turn}) % 360);
            node.style.setProperty("--p", [0, 0.5, 1, 1.16][(i + {turn}) % 4]);}})"""
        )
        found = opened.contrasts()
        assert len(found) > 100 and found[0][0] >= 4.5, found[:5]


def test_it_fits_a_phone(docs, page):
    """With the details of a span, whose tables are wider than the screen."""
    with Browser() as phone:
        phone.narrow(360)
        phone.open(page)
        phone.run("document.querySelector('article .span.wrong').click()")
        assert len(texts(phone, ".details .heat")) == 1 and phone.width() == 360


def test_texts_have_their_language_and_their_direction(browser, tmp_path):
    nlp = spacy.blank("ar")
    nlp.add_pipe("hocrf")
    doc = nlp.make_doc("ولدت آدا في لندن")
    doc.set_ents([Span(doc, 1, 2, "PERSON"), Span(doc, 3, 4, "PLACE")])
    rain = nlp.make_doc("هطل المطر في كل مكان")
    rain.set_ents([])
    data = [Example(nlp.make_doc(each.text), each) for each in (doc, rain)]
    learn_from(nlp, data, 8)
    path = tmp_path / "page.html"
    reading = nlp.get_pipe("hocrf").reading(nlp.make_doc(doc.text))
    for html in (show(nlp, [doc]), reading.to_html()):
        path.write_text(html, encoding="utf8")
        browser.open(path)
        assert browser.run("document.documentElement.lang") == "ar"
        browser.run("document.querySelector('.span').click()")
        for words in (".line", ".details bdi", ".details code", ".details .heat thead th"):
            every = f"[...document.querySelectorAll({json.dumps(words)})].map"
            assert set(browser.run(f"{every}(node => node.lang)")) == {"ar"}, words
            assert set(browser.run(f"{every}(node => node.closest('[lang]').lang)")) == {"ar"}
        assert browser.run("getComputedStyle(document.querySelector('.line')).direction") == "rtl"
        for words in ("h1", ".head", ".details h3", ".line small"):
            node = f"document.querySelector({json.dumps(words)})"
            assert browser.run(f"{node}.closest('[lang]').lang") == "en"
            assert browser.run(f"getComputedStyle({node}).direction") == "ltr"


def test_many_texts_are_drawn_when_asked_for(browser, nlp, docs, tmp_path):
    path = tmp_path / "many.html"
    path.write_text(show(nlp, docs[1:2] * 205), encoding="utf8")
    browser.open(path)
    assert len(texts(browser, "article")) == 200 and texts(browser, "#more") == ["Show 5 more"]
    browser.run("document.getElementById('more').click()")
    assert len(texts(browser, "article")) == 205
    assert browser.run("document.getElementById('more').hidden")
    assert browser.run("document.activeElement.closest('article').matches(':nth-child(201)')")


def test_a_reading_is_a_page_and_a_frame_in_a_notebook(browser, nlp, tmp_path):
    reading = nlp.get_pipe("hocrf").reading(nlp.make_doc(f"Ada Lovelace slept {EVIL}"))
    for name, html in (("page", reading.to_html()), ("frame", reading._repr_html_())):
        path = tmp_path / f"{name}.html"
        path.write_text(html, encoding="utf8")
        browser.faults.clear()
        browser.open(path)
        assert browser.faults == []
    assert texts(browser, "iframe") == [""]  # what is inside is nobody else's
    assert browser.run("document.querySelector('iframe').srcdoc") == reading.to_html()
    browser.open(tmp_path / "page.html")
    assert len(texts(browser, "article")) == 1 and texts(browser, "#count") == [""]
    assert EVIL in texts(browser, "article")[0]
    assert data_of(reading.to_html(at_least=0.01))["texts"][0]["spans"]
    with pytest.raises(ValueError, match="H200"):
        reading.to_html(at_least=0.0)


# The command


@pytest.fixture(scope="module")
def folder(nlp, docs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("show")
    nlp.to_disk(folder / "model")
    DocBin(docs=docs, store_user_data=True).to_disk(folder / "gold.spacy")
    return folder


def test_the_command_writes_the_page(folder, nlp, docs):
    output = folder / "new" / "page.html"
    command = ["show", str(folder / "model"), str(folder / "gold.spacy"), "--output", str(output)]
    commands.run(*command)
    page = output.read_text(encoding="utf8")
    assert data_of(page) == data_of(show(nlp, docs))
    assert "What the model finds in 11 texts, and how sure it is</h1>" in page
    assert "gold.spacy" in page
    commands.run(*command, "--title", "Mine", "--most", "2")
    assert "<h1>Mine</h1>" in output.read_text(encoding="utf8")


def test_the_learning_curve_of_auto_is_drawn(folder, browser, tmp_path):
    curve = Curve(
        (10, 20, 40), (0.6, 0.7, 0.8), (0.03, 0.02, 0.01), 0.95, 1.2, 0.6, 50, Interval(0.8, 0.9)
    )
    path, output = folder / "curve.json", tmp_path / "page.html"
    command = ["show", str(folder / "model"), str(folder / "gold.spacy"), "-o", str(output)]
    try:
        srsly.write_json(path, curve_numbers(curve))
        commands.run(*command)
        for broken in ("[]", "{}", '{"points": [{}], "line": [], "now": 1}', '{"line": []}'):
            path.write_text(broken)
            done = commands.run(*command, code=1)
            assert "H234" in done
    finally:
        path.unlink()
    browser.faults.clear()
    browser.open(output)
    assert browser.faults == []
    assert len(texts(browser, "figure")) == 2
    label = browser.run("document.querySelectorAll('figure svg')[1].getAttribute('aria-label')")
    assert label.startswith("F1 by texts to learn from: 10: 60; 20: 70; 40: 80; 100:")
    assert browser.run("document.querySelectorAll('.path').length") == 2


def test_texts_are_called_by_their_ids(nlp):
    docs = [nlp.make_doc(text) for text in ("Ada slept", "It rains")]
    set_identity(docs[1], "W-17", {})
    data = show(nlp, docs)
    assert '"id":"W-17"' in data and data.count('"id":') == 1
