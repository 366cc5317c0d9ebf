"""A person at the page of `hocrf label`, who has nothing but a keyboard."""

import re
import time

SPANS = """[...document.querySelectorAll("#text .span")].map((node) => {
  const words = [...node.querySelectorAll(".word")].map((word) => Number(word.dataset.t));
  return [words[0], words.at(-1) + 1, node.querySelector("small").firstChild.data];
})"""
WORDS = '[...document.querySelectorAll("#text .word")].map((node) => node.textContent).join("")'
SECONDS = 30


class PageUser:
    """Presses keys and waits until the page has done what they ask for.

    browser (Browser): where the page is.
    """

    def __init__(self, browser):
        self.browser, self.pressed = browser, 0

    def open(self, address):
        """Open the page, whatever is open."""
        self.browser.open("about:blank")
        self.browser.open(address)
        self.settle()

    def press(self, *keys, times=1, **held):
        """Press keys one after the other."""
        for key in keys * times:
            self.pressed += 1
            self.browser.press(key, **held)

    def until(self, script):
        """Wait for something to be true on the page."""
        for _ in range(20 * SECONDS):
            if self.browser.run(script):
                return
            time.sleep(0.05)
        raise AssertionError(f"never true: {script}; {self.shown('body')[:500]}")

    def settle(self):
        """Wait until the page has all that it has asked for."""
        self.until('document.getElementById("text").getAttribute("aria-busy") === "false"')

    def shown(self, selector):
        """Text of an element, "" if it is hidden."""
        return self.browser.run(f"document.querySelector({selector!r}).innerText")

    def spans(self):
        """What is marked: first token, one past the last, label."""
        return [tuple(span) for span in self.browser.run(SPANS)]

    def words(self):
        """The text."""
        return self.browser.run(WORDS)

    def number(self):
        """Of the text, from 1 on."""
        match = re.match(r"Text (\d+)", self.shown("#head"))
        assert match, f"no text is open: {self.shown('body')[:500]}"
        return int(match[1])

    def select(self, start, end):
        """Select words: those of a span alone, whatever it is."""
        self.press("Home")
        self.press("ArrowRight", times=start)
        self.press("ArrowRight", times=max(1, end - start - 1), shift=True)
        if end - start == 1:
            self.press("ArrowLeft", shift=True)

    def mark(self, start, end, key):
        """Select words and press a label's key, or another one."""
        self.select(start, end)
        self.press(key)
        self.settle()

    def accept(self):
        """Accept what is marked. RETURNS: the text's number, once the page has called it saved."""
        number = self.number()
        self.browser.run('document.getElementById("saved").textContent = ""')
        self.press("Enter")
        self.until(
            f'document.getElementById("saved").textContent.startsWith("Saved: text {number},")'
        )
        return number
