"""A loop for tests of `hocrf label`: it finds phrases that were labelled before; texts keep their order."""

from spacy_hocrf.cli.label.estimates import Estimate
from spacy_hocrf.cli.label.loop import LoopProgress, TextChoice
from spacy_hocrf.cli.label.readings import Readings


class WordLoop:
    """Spans are phrases that have been annotated before, all with the label of the first fixed span, if there
    is one; the second reading is without the last of them.

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
            return Readings([], [], 0)
        found, taken = list(fixed), [*(span[:2] for span in fixed), *outside]
        for phrase, label in sorted(known.items(), key=lambda each: -len(each[0])):
            start = self.texts[text].find(phrase)
            end = start + len(phrase)
            if start >= 0 and all(end <= first or last <= start for first, last in taken):
                found.append((start, end, fixed[0][2] if fixed else label))
                taken.append((start, end))
        best = tuple((*span, 1.0 if span in fixed else 0.9) for span in sorted(found))
        readings, free = [(best, 0.6)], [span for span in found if span not in fixed]
        if free:
            readings.append((tuple(each for each in best if each[:3] != free[-1]), 0.3))
        labels = [*sorted(set(known.values())), ""]
        others = [
            (start, end, [(other, 0.04) for other in labels if other != label])
            for start, end, label, _ in best
        ]
        return Readings(readings, others, len(self.said))

    def next(self, exclude):
        left = [i for i in range(len(self.texts)) if i not in exclude]
        return TextChoice(
            left[0] if left else None, "random" if left and left[0] % 5 == 0 else "doubt"
        )

    def progress(self):
        n = len(self.said)
        curve = [(i, 1 - 1 / i) for i in range(2, n + 1)]
        numbers = (0.9, 0.8, 0.95, 3, 0.25, 0.92) if n > 2 else (None, None, None, 0, None, None)
        return LoopProgress(Estimate(*numbers, curve), n, False, None, 0.2)

    def close(self):
        self.calls.append(("close",))
