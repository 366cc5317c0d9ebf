"""A loop for tests of `hocrf label`: it finds phrases that were labelled before; texts keep their order."""

from typing import NamedTuple


class MarkedSpan(NamedTuple):
    start: int
    end: int
    label: str
    probability: float
    others: tuple


class OneReading(NamedTuple):
    spans: tuple
    probability: float


class Readings(NamedTuple):
    best: tuple
    spans: tuple
    doubt: float
    version: int


class Choice(NamedTuple):
    text: int | None
    why: str


class Progress(NamedTuple):
    annotated: int
    texts: int
    version: int
    learning: bool
    error: str | None
    f: float | None
    low: float | None
    high: float | None
    held_out: int
    accepted: float | None
    gain: float | None
    curve: tuple
    random: float


class WordLoop:
    """Spans are phrases that have been annotated before; the second reading is without the last of them.

    texts (Sequence[str]): the texts. calls (list): what it was told.
    """

    def __init__(self, texts):
        self.texts, self.said, self.calls = texts, {}, []

    def decide(self, text, spans, unknown=(), facts=None):
        self.calls.append(("decide", text, tuple(spans), tuple(unknown), facts))
        self.said[text] = tuple(spans)
        return facts or {"order": len(self.calls)}

    def withdraw(self, text):
        self.calls.append(("withdraw", text))
        self.said.pop(text, None)

    def readings(self, text, fixed=(), outside=(), n=10):
        known = {
            self.texts[i][start:end]: label
            for i, spans in self.said.items()
            for start, end, label in spans
        }
        if not known:
            return Readings((), (), 1.0, 0)
        found, taken = list(fixed), [*(span[:2] for span in fixed), *outside]
        for phrase, label in sorted(known.items(), key=lambda each: -len(each[0])):
            start = self.texts[text].find(phrase)
            end = start + len(phrase)
            if start >= 0 and all(end <= first or last <= start for first, last in taken):
                found.append((start, end, label))
                taken.append((start, end))
        best, free = tuple(sorted(found)), [span for span in found if span not in fixed]
        readings = [OneReading(best, 0.6)]
        if free:
            readings.append(OneReading(tuple(each for each in best if each != free[-1]), 0.3))
        labels = sorted(set(known.values()))
        marked = [
            MarkedSpan(
                *each, 0.9, tuple((*each[:2], y, 0.04) for y in [*labels, ""] if y != each[2])
            )
            for each in best
        ]
        return Readings(tuple(readings), tuple(marked), 0.4, len(self.said))

    def next(self, exclude):
        left = [i for i in range(len(self.texts)) if i not in exclude]
        return Choice(left[0] if left else None, "random" if left and left[0] % 5 == 0 else "doubt")

    def progress(self):
        n = len(self.said)
        curve = tuple((i, 1 - 1 / i) for i in range(2, n + 1))
        score = (0.9, 0.8, 0.95) if n > 2 else (None, None, None)
        more = (0.25, 0.02) if n > 2 else (None, None)
        return Progress(n, len(self.texts), n, False, None, *score, n // 5, *more, curve, 0.2)

    def close(self):
        self.calls.append(("close",))
