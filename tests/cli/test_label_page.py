"""The page of `hocrf label` in a browser: keys alone, undo, and two windows."""

import threading

import pytest
from browser import Browser
from label_page import PageUser
from word_loop import WordLoop

from spacy_hocrf.cli.label.session import Session, TextToLabel
from spacy_hocrf.cli.label.store import DecisionStore

uvicorn = pytest.importorskip("uvicorn")
server = pytest.importorskip("spacy_hocrf.cli.label.server")

pytestmark = pytest.mark.slow
KEYS = {"PER": "p", "LOC": "l", "<b>evil</b>": "b"}
UNNAMED = """[...document.querySelectorAll("button, input, [tabindex], [role=group], svg")].filter(
  (node) => !node.textContent.trim() && !node.ariaLabel && !node.hasAttribute("aria-labelledby")
).map((node) => node.outerHTML)"""
WORDS = [
    ["Ada ", "met ", "Max ", "in ", "Paris", "."],
    ["Max ", "met ", "Ada ", "in ", "Rome", "."],
    ["In ", "Paris ", "Max ", "slept", "."],
    ["<img src=x onerror=alert(1)> ", "Ada ", "🙂 ", "Rome"],
]


@pytest.fixture(scope="module")
def browser():
    with Browser() as opened:
        yield opened


@pytest.fixture
def session(tmp_path):
    """Texts with a loop that is no model."""
    texts, plain = [TextToLabel(words) for words in WORDS], ["".join(words) for words in WORDS]
    store = DecisionStore(tmp_path / "mine", plain, [*KEYS])
    yield Session(texts, [*KEYS], store, WordLoop(plain), lambda _: "<b>Written</b>", "en")
    store.close()


@pytest.fixture
def place(session):
    """Address of their page."""
    with server.listen("127.0.0.1", 0) as listening:
        app = server.make_app(session, "secret")
        running = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="error", ws="none"))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/#secret"
        running.should_exit = running.force_exit = True
        thread.join()


@pytest.fixture
def user(browser, place):
    """Somebody at that page, which has neither failed nor done what it may not."""
    browser.faults.clear()
    person = PageUser(browser)
    person.open(place)
    yield person
    # a browser logs every answer that refuses something
    assert not [each for each in browser.faults if "409 (Conflict)" not in str(each)]


def first(user):
    """Annotate the first text."""
    user.mark(0, 1, "p")
    user.mark(2, 3, "p")
    user.mark(4, 5, "l")
    return user.accept()


def test_keys_alone(user):
    assert user.words() == "Ada met Max in Paris." and user.spans() == []
    assert first(user) == 1 and user.number() == 2
    assert user.spans() == [(0, 1, "PER"), (2, 3, "PER")]
    assert "60 % sure" in user.shown("#head") and "in doubt" in user.shown("#head")
    assert "1 of 4 texts annotated" in user.shown("#progress")


def test_keys_are_heard_wherever_nothing_else_has_the_focus_and_a_held_one_once(user):
    user.browser.run("document.activeElement.blur()")
    user.mark(0, 1, "p")
    assert user.spans() == [(0, 1, "PER")]
    user.browser.run("document.activeElement.blur()")
    for _ in range(2):
        shared = {"key": "Enter", "windowsVirtualKeyCode": 13, "autoRepeat": True}
        user.browser.send("Input.dispatchKeyEvent", type="keyDown", **shared)
    user.settle()
    assert user.number() == 1
    assert user.accept() == 1


@pytest.mark.parametrize("key", ["л", "ש", "ل", "λ"])
def test_keys_of_other_scripts_are_those_at_their_place(user, key):
    user.mark(0, 1, "p")
    user.mark(4, 5, "l")
    for pressed, code, held in (("я", "KeyZ", 2), (key, "KeyL", 0)):
        both = {"key": pressed, "code": code, "modifiers": held, "windowsVirtualKeyCode": 0}
        if not held:
            user.press("End")
        for kind in ("keyDown", "keyUp"):
            user.browser.send("Input.dispatchKeyEvent", type=kind, **both)
        user.settle()
        assert len(user.spans()) == 1 + (not held)
    assert user.spans() == [(0, 1, "PER"), (5, 6, "LOC")]


def test_the_first_model_is_shown_as_soon_as_it_is_there(user, session):
    session._loop.decide(1, ((0, 3, "PER"),))
    user.until("document.querySelectorAll('#text .span').length === 1")
    assert user.spans() == [(2, 3, "PER")]
    session._loop.decide(2, ((3, 8, "LOC"),))  # later ones change nothing that is read
    session._loop.decide(3, ())
    user.until("document.getElementById('progress').textContent.includes('F1 90 (80 to 95) on 3')")
    assert user.spans() == [(2, 3, "PER")]


def test_a_correction_holds_and_the_rest_is_read_anew(user):
    first(user)
    user.press("ArrowDown")
    assert "“Max” PER, 90 % sure" in user.shown("#about")
    user.press("1")  # LOC, as the loop says
    user.settle()
    assert user.spans() == [(0, 1, "LOC"), (2, 3, "LOC")]
    user.mark(0, 3, "Delete")
    assert user.spans() == []
    user.mark(1, 3, "b")
    assert user.spans() == [(1, 3, "<b>evil</b>")]
    for wanted in ([], [(0, 1, "LOC"), (2, 3, "LOC")], [(0, 1, "PER"), (2, 3, "PER")]):
        user.press("z", control=True)
        user.settle()
        assert user.spans() == wanted


def test_other_readings(user):
    first(user)
    both = user.spans()
    user.press("Tab")
    assert len(user.spans()) == 1 and "reading 2 of 2" in user.shown("#head")
    user.press("Tab")
    assert user.spans() == both
    user.press("Tab", shift=True)
    (shown,) = user.spans()
    user.accept()
    user.press("PageUp")
    user.settle()
    assert user.number() == 2 and user.spans() == [shown]


def test_undo_goes_back_to_the_text_before(user):
    first(user)
    user.press("z", control=True)
    user.settle()
    assert user.number() == 1 and user.spans() == [(0, 1, "PER"), (2, 3, "PER"), (4, 5, "LOC")]
    assert "0 of 4" not in user.shown("#saved") and "Undone" in user.shown("#saved")
    user.press("z", control=True)
    user.settle()
    assert "nothing to undo" in user.shown("#saved")


def test_what_nobody_can_tell_and_what_is_skipped(user):
    first(user)
    user.mark(2, 3, "?")
    assert user.spans() == [(0, 1, "PER")]
    user.accept()
    user.press("PageDown")
    user.settle()
    assert "Left for later: text 3" in user.shown("#saved") and user.number() == 4
    user.press("PageUp")
    user.settle()
    assert user.number() == 3 and "left for later" in user.shown("#head")
    user.press("PageUp")
    user.settle()
    assert user.number() == 2 and user.spans() == [(0, 1, "PER")]
    assert user.shown("#text .unknown") == "Ada ?"


def test_reload_and_search(user, place):
    first(user)
    user.open(place)
    assert user.number() == 2
    user.press("/")
    user.until("document.querySelectorAll('#rows button').length === 4")
    for letter in "paris":
        user.press(letter, text=letter)
    user.until("document.querySelectorAll('#rows button').length === 2")
    assert user.shown("#rows").startswith("✓ 1 Ada met Max in Paris.")
    user.press("ArrowDown", "ArrowDown")
    user.press("Enter", text="\r")
    user.until("document.getElementById('head').textContent.startsWith('Text 3')")
    user.settle()
    assert user.browser.run("document.activeElement.id") == "text"


def test_the_end(user):
    first(user)
    for _ in range(3):
        user.accept()
    assert "All texts are annotated" in user.shown("#head") and user.words() == ""
    user.press("Enter", "PageDown", "ArrowRight", "p", "Tab")
    user.press("s", control=True)
    user.until("document.getElementById('saved').textContent === '<b>Written</b>'")
    user.press("z", control=True)
    user.settle()
    assert user.number() == 4
    assert user.words().startswith(WORDS[3][0]) and user.browser.run("document.images.length") == 0


def test_what_is_not_accepted_survives_a_reload(user, place, session):
    first(user)
    user.press("ArrowDown")
    user.press("1")
    user.settle()
    assert user.spans() == [(0, 1, "LOC"), (2, 3, "LOC")]
    user.open(place)
    user.settle()
    user.until("document.querySelectorAll('#text .fixed').length === 1")
    assert user.number() == 2 and user.spans() == [(0, 1, "LOC"), (2, 3, "LOC")]
    user.press("z", control=True)
    user.settle()
    assert user.spans() == [(0, 1, "PER"), (2, 3, "PER")]
    assert user.accept() == 2
    user.open(place)
    assert user.number() == 3  # what was accepted is no draft


def test_by_mouse(user):
    first(user)

    def mouse(kind, t):
        box = f"document.querySelector('#text [data-t=\"{t}\"]').getBoundingClientRect()"
        x, y = user.browser.run(
            f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])({box})"
        )
        user.browser.send(
            "Input.dispatchMouseEvent",
            type=kind,
            x=x,
            y=y,
            button="left",
            buttons=int(kind != "mouseReleased"),
            clickCount=1,
        )

    mouse("mousePressed", 0)
    mouse("mouseReleased", 0)
    user.until("document.getElementById('about').textContent.startsWith('“Max” PER')")
    mouse("mousePressed", 1)
    mouse("mouseMoved", 4)
    mouse("mouseReleased", 4)
    user.browser.run("document.querySelectorAll('#labels button')[1].click()")
    user.settle()
    assert (1, 5, "LOC") in user.spans() and user.browser.run("document.activeElement.id") == "text"


def test_of_two_windows_the_first_is_told(user, place):
    with Browser() as other:
        second = PageUser(other)
        second.open(place)
        assert first(second) == 1
        user.mark(0, 1, "l")
        user.press("Enter")
        user.until("!document.getElementById('warning').hidden")
        assert "[H546]" in user.shown("#warning") and (0, 1, "LOC") in user.spans()
        user.browser.run("document.querySelector('#warning button').click()")
        user.until("document.getElementById('head').textContent.startsWith('Text 2')")
        user.settle()
        assert user.accept() == 2
        second.press("Enter")
        second.until("!document.getElementById('warning').hidden")
        assert "[H546]" in second.shown("#warning")


def test_without_the_token(browser, place):
    browser.open("about:blank")
    browser.open(place.replace("secret", "wrong"))
    user = PageUser(browser)
    user.until("!document.getElementById('warning').hidden")
    assert "[H545]" in user.shown("#warning") and user.words() == ""
    browser.faults.clear()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("narrow", [False, True], ids=["wide", "phone"])
def test_everything_can_be_read(place, dark, narrow):
    with Browser() as opened:
        if narrow:
            opened.narrow()
        opened.look(dark)
        user = PageUser(opened)
        user.open(place)
        first(user)
        user.mark(2, 3, "?")
        user.press("ArrowDown")
        opened.run("document.querySelector('details').open = true")
        contrast, text = opened.contrasts()[0]
        assert contrast >= 4.5, text
        assert opened.width() <= (360 if narrow else 1200)


def test_everything_has_a_name_and_the_text_can_be_left(user):
    unnamed = user.browser.run(UNNAMED)
    assert unnamed == []
    user.press("Escape")
    assert user.browser.run("document.activeElement.innerText").startswith("Accept")
    user.browser.press("Tab", 9)
    assert user.browser.run("document.activeElement.innerText").startswith("Other reading")
    user.press("ArrowRight")
    spoken = user.browser.run("document.getElementById('spoken').textContent")
    assert spoken == "" or ":" in spoken
