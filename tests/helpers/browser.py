"""A page in a real browser, for tests: Chromium without a window, asked through two pipes.

The protocol is Chromium's own (https://chromedevtools.github.io/devtools-protocol): JSON, one message
after the other, each with a zero byte behind it.
"""

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
# Chromium reads from file descriptor 3 and writes to 4
BEGIN = """\
import fcntl, os, sys
for place, number in enumerate([fcntl.fcntl(int(n), fcntl.F_DUPFD, 20) for n in sys.argv[1:3]], 3):
    os.dup2(number, place)
os.execv(sys.argv[3], sys.argv[3:])
"""
CONTRAST = """(() => {
const pen = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
const rgba = (colour) => {
  pen.clearRect(0, 0, 1, 1);
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  return [...pen.getImageData(0, 0, 1, 1).data].map((value) => value / 255);
};
const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
const behind = (node) => (node
  ? over(rgba(getComputedStyle(node).backgroundColor), behind(node.parentElement)) : [1, 1, 1]);
const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const node = walker.currentNode.parentElement, style = getComputedStyle(node);
  if (!walker.currentNode.data.trim() || !node.getClientRects().length) continue;
  const ground = behind(node), ink = over(rgba(node.closest("svg") ? style.fill : style.color), ground);
  const [low, high] = [luminance(ground), luminance(ink)].sort((a, b) => a - b);
  found.push([(high + 0.05) / (low + 0.05), `${node.tagName} ${walker.currentNode.data.trim()}`]);
}
return found.sort((a, b) => a[0] - b[0]);
})()"""
SECONDS = 60
"""After so long without an answer the browser is given up."""


class Browser:
    """A page that is open; every script sees it as it is by then."""

    def __init__(self, width=1200, height=1000):
        binary = next(filter(None, map(shutil.which, NAMES)), None)
        if binary is None:
            pytest.skip(f"none of {', '.join(NAMES)} is installed")
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        flags = [*FLAGS, f"--window-size={width},{height}", f"--user-data-dir={self._profile.name}"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", BEGIN, str(theirs_in), str(theirs_out), binary, *flags],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._number, self._rest, self._session = 0, b"", None
        self.faults = []  # errors of scripts, and what the page was not allowed to do
        try:
            self._attach()
        except BaseException:
            self.close()
            raise

    def _attach(self):
        """Have a page to talk to."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        found = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """End it."""
        os.killpg(self._process.pid, signal.SIGKILL)  # the group that it leads
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()

    def open(self, path):
        """Load a file, or what is at an address, and wait until it is drawn."""
        self.send("Page.navigate", url=path if isinstance(path, str) else path.resolve().as_uri())
        self._until(lambda message: message.get("method") == "Page.loadEventFired")

    def run(self, script):
        """The value of an expression; an error of the page is one here."""
        asked = {"expression": script, "returnByValue": True, "awaitPromise": True}
        found = self.send("Runtime.evaluate", **asked)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, key, code=0, text="", *, control=False, shift=False):
        """Press a key, where the focus is."""
        modifiers = 2 * control + 8 * shift
        shared = {"key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **shared)
        self.send("Input.dispatchKeyEvent", type="keyUp", **shared)

    def look(self, dark):
        """Take the scheme that a user prefers."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def narrow(self, width=360, height=740):
        """Become a phone."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": True}
        self.send("Emulation.setDeviceMetricsOverride", **size)

    def width(self):
        """Of the page: wider than the screen, and it has to be moved sideways."""
        return self.run("document.documentElement.scrollWidth")

    def contrasts(self):
        """Contrast (WCAG 2) of every text with what is behind it, the least first; and the text."""
        return self.run(CONTRAST)

    def picture(self, path):
        """What is seen, as PNG."""
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot")["data"]))

    def send(self, method, **parameters):
        """Ask the browser for something."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        answer = self._until(lambda found, number=self._number: found.get("id") == number)
        assert "error" not in answer, answer
        return answer["result"]

    def _until(self, wanted):
        """The first message that is wanted."""
        while True:
            while b"\0" in self._rest:
                message, self._rest = self._rest.split(b"\0", 1)
                answer = json.loads(message)
                if answer.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                    self.faults.append(answer["params"])
                if wanted(answer):
                    return answer
            self._rest += self._read()

    def _read(self):
        previous = signal.signal(signal.SIGALRM, _too_late)
        signal.alarm(SECONDS)
        try:
            found = os.read(self._in, 1 << 16)
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, previous)
        assert found, "the browser has ended"
        return found


def _too_late(*_):
    raise TimeoutError(f"no answer from the browser for {SECONDS} seconds")
