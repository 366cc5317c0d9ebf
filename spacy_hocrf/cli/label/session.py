"""An annotation session: answers the page's requests, and keeps the decisions, their history and the next
text. The page uses tokens and numbers of labels, which are converted to characters and names here.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from threading import Lock
from typing import Any, NamedTuple
from unicodedata import normalize

import msgspec

from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.label.loop import LabelLoop
from spacy_hocrf.cli.label.readings import Stretch, TokenPlaces
from spacy_hocrf.cli.label.store import Chars, Decision, DecisionStore, check_decision

__all__ = ["Conflict", "Request", "Session", "TextToLabel"]

MAX_HITS, HIT_LENGTH = 50, 160
"""Number of texts that a search shows, and of characters of each."""

GIVEN = {"given": True}
"""Tells the loop that annotation is from the file, not made here."""


class TextToLabel(NamedTuple):
    """A text and the annotation in its file.

    words (Sequence[str]): tokens, with the white space after each.
    id (str): id in the file, or "".
    spans (Optional[tuple[Chars, ...]]): annotated spans; None if the text is not annotated.
    unknown (tuple[tuple[int, int], ...]): stretches that are not annotated, if others are.
    """

    words: Sequence[str]
    id: str = ""
    spans: tuple[Chars, ...] | None = None
    unknown: tuple[Stretch, ...] = ()


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request of a page's window, in tokens and numbers of labels; each kind uses some of the fields.

    window (int): its number. text (int): number of the text. revision (int): revision that was shown.
    spans (list[tuple[int, int, int]]), outside, unknown (list[tuple[int, int]]): the person's annotation.
    words (str): words to search for.
    """

    window: int = 0
    text: int = -1
    revision: int = 0
    spans: list[tuple[int, int, int]] = []
    outside: list[tuple[int, int]] = []
    unknown: list[tuple[int, int]] = []
    words: str = ""


class Conflict(ValueError):
    """H546 or H547: the window, or the text it shows, is out of date."""


class Session:
    """The texts, the decisions on them, and the loop that learns from these.

    texts (Sequence[TextToLabel]): the texts. labels (Sequence[str]): labels of spans.
    store (DecisionStore): stores the decisions; the loop learns those of earlier sessions.
    loop (LabelLoop): predicts texts and chooses the next one.
    export (Callable[[list[TextToLabel]], str]): writes the annotation, and returns a message.
    lang (str): language of the texts, as an HTML attribute.
    """

    def __init__(
        self,
        texts: Sequence[TextToLabel],
        labels: Sequence[str],
        store: DecisionStore,
        loop: LabelLoop,
        export: Callable[[list[TextToLabel]], str],
        lang: str = "",
    ) -> None:
        self.lang = lang
        self._texts, self.labels, self._store, self._loop = texts, labels, store, loop
        self._export, self._lock, self._exporting, self._window = export, Lock(), Lock(), 0
        self._places = [TokenPlaces(text.words) for text in texts]
        self._numbers = {label: number for number, label in enumerate(labels)}
        self._plain = [places.text for places in self._places]
        self._given = {
            i: Decision(i, text.spans, text.unknown)
            for i, text in enumerate(texts)
            if text.spans is not None
        }
        self._held = list[Decision]()  # decisions that were not undone, in order
        self._own: dict[int, list[Decision]] = defaultdict(list)  # these decisions by text
        self._revisions = [0] * len(texts)
        for decision in store.decisions:
            self._note(decision)
        for i, given in self._given.items():
            loop.decide(i, given.spans or (), given.unknown, GIVEN)
        for i in dict.fromkeys(decision.text for decision in self._held):
            self._inform(i)

    @property
    def widened(self) -> int:
        """Number of spans of earlier sessions that do not fit the tokens and are widened to whole ones."""
        stretches = [(d.text, *span[:2]) for d in self._held for span in d.spans or ()]
        return sum(
            self._places[i].chars(*self._places[i].tokens(start, end)) != (start, end)
            for i, start, end in stretches
        )

    # Requests of a window, one method for each kind

    def open(self, _: Request) -> dict[str, Any]:
        """Open a new window, the only one that may decide from now on, and return its first text."""
        with self._lock:
            self._window += 1
            own = {"window": self._window, "labels": [*self.labels], "lang": self.lang}
            return own | self._next()

    def show(self, request: Request) -> dict[str, Any]:
        """Return the current state of a text."""
        with self._lock:
            return {"view": self._view(self._number(request))}

    def read(self, request: Request) -> dict[str, Any]:
        """Return readings of a text, given the person's annotation so far."""
        with self._lock:
            i = self._number(request)
            outside = [*request.outside, *request.unknown]
            return self._readings(i, self._spans(i, request.spans), self._chars(i, outside))

    def decide(self, request: Request) -> dict[str, Any]:
        """Save the spans of a text, and return the next text."""
        return self._decided(
            request, lambda i: (self._spans(i, request.spans), self._chars(i, request.unknown))
        )

    def skip(self, request: Request) -> dict[str, Any]:
        """Mark a text as skipped, and return the next text."""
        return self._decided(request, lambda _: (None, ()))

    def undo(self, request: Request) -> dict[str, Any]:
        """Undo the last decision, and return its text with that decision."""
        with self._lock:
            self._check_window(request)
            if not self._held:
                return {"view": None}
            last = self._held[-1]
            self._keep(Decision(last.text, undone=True))
            self._inform(last.text)
            return {"view": self._view(last.text, last)}

    def search(self, request: Request) -> dict[str, Any]:
        """Search for words in the texts: decided ones first, the latest at the top, then the others."""
        with self._lock:
            words = normalize("NFC", request.words).casefold()
            decided = dict.fromkeys(decision.text for decision in reversed(self._held))
            order = [*decided, *(i for i in range(len(self._texts)) if i not in decided)]
            rows = list[dict[str, Any]]()
            for i in order:
                text = normalize("NFC", self._plain[i])
                at = text.casefold().find(words)
                if at >= 0 and len(rows) < MAX_HITS:
                    first = max(0, at - HIT_LENGTH // 4)
                    begin = "…" * (first > 0) + text[first : first + HIT_LENGTH]
                    rows.append({"text": i, "begin": begin, "state": self._state(i)})
            return {"rows": rows}

    def progress(self, _: Request) -> dict[str, Any]:
        """Return the progress of the annotation and of the model."""
        with self._lock:
            return self._progress()

    def export(self, _: Request) -> dict[str, Any]:
        """Write all annotation and the model."""
        return {"told": self.export_all()}

    def export_all(self) -> str:
        """Write all annotation and the model. RETURNS (str): a message that lists the files.

        RAISES (ValueError): H587 if they cannot be written.
        """
        with self._lock:
            decisions = map(self._decision, range(len(self._texts)))
            texts = [
                text._replace(spans=d.spans if d else None, unknown=d.unknown if d else ())
                for text, d in zip(self._texts, decisions, strict=True)
            ]
        with self._exporting:
            try:
                return self._export(texts)
            except OSError as error:
                raise ValueError(CommandErrors.H587.format(reason=error)) from error

    # Decisions

    def _decided(
        self,
        request: Request,
        annotation: Callable[[int], tuple[tuple[Chars, ...] | None, tuple[Stretch, ...]]],
    ) -> dict[str, Any]:
        """Check and save a decision, and return the next text.

        RAISES (Conflict): H546 or H547 if it is out of date.
        RAISES (ValueError): H544 if it cannot be saved, H545 if it is invalid.
        """
        with self._lock:
            self._check_window(request)
            i = self._number(request)
            if request.revision != self._revisions[i]:
                raise Conflict(CommandErrors.H547.format(number=i + 1))
            spans, unknown = annotation(i)
            before, new = self._decision(i), Decision(i, spans, unknown)
            try:
                check_decision(new, self._plain)
            except ValueError as error:
                raise ValueError(CommandErrors.H545.format(reason=error)) from None
            if before is None or (before.spans, before.unknown) != (spans, unknown):
                self._decide(new)
            return self._next()

    def _decide(self, new: Decision) -> None:
        """Pass a decision to the loop, and save it together with the loop's facts on it."""
        if new.spans is None:
            self._keep(new)
            self._loop.withdraw(new.text)
            return
        facts = self._loop.decide(new.text, new.spans, new.unknown)
        try:
            self._keep(Decision(new.text, new.spans, new.unknown, facts=facts))
        except ValueError:
            self._inform(new.text)
            raise

    def _inform(self, i: int) -> None:
        """Pass the current decision on a text to the loop."""
        decision, given = self._decision(i), self._given.get(i)
        if decision is None or decision.spans is None:
            self._loop.withdraw(i)
        else:
            facts = GIVEN if decision is given else decision.facts
            self._loop.decide(i, decision.spans, decision.unknown, facts)

    def _keep(self, decision: Decision) -> None:
        self._store.append(decision)
        self._note(decision)

    def _note(self, decision: Decision) -> None:
        if decision.undone:
            self._held.pop()
            self._own[decision.text].pop()
        else:
            self._held.append(decision)
            self._own[decision.text].append(decision)
        self._revisions[decision.text] += 1

    def _decision(self, i: int) -> Decision | None:
        """Return the decision that holds for a text: the person's last one, else that of the file."""
        own = self._own[i]
        return own[-1] if own else self._given.get(i)

    def _state(self, i: int) -> str:
        decision = self._decision(i)
        if decision is None or (decision is self._given.get(i) and decision.unknown):
            return "open"
        return "skipped" if decision.spans is None else "annotated"

    def _check_window(self, request: Request) -> None:
        if request.window != self._window:
            raise Conflict(CommandErrors.H546.format())

    # Texts in the page's terms

    def _next(self) -> dict[str, Any]:
        """Return the next text, if there is one, and the progress."""
        done = {i for i in range(len(self._texts)) if self._state(i) != "open"}
        text, why = self._loop.next(done)
        view = None if text is None else self._view(text) | {"why": why}
        return {"view": view, "progress": self._progress()}

    def _view(self, i: int, decision: Decision | None = None) -> dict[str, Any]:
        """Describe a text, a decision on it, and readings given this. decision: None for the current one."""
        decision = decision or self._decision(i)
        places, spans, unknown = self._places[i], tuple[Chars, ...](), tuple[Stretch, ...]()
        outside = list[Stretch]()
        if decision is not None and decision.spans is not None:
            spans, unknown = decision.spans, decision.unknown
            outside = self._between(i, [*((start, end) for start, end, _ in spans), *unknown])
        return {
            "text": i,
            "id": self._texts[i].id,
            "words": [*self._texts[i].words],
            "revision": self._revisions[i],
            "state": self._state(i),
            "spans": self._on_page(i, spans),
            "outside": [places.tokens(*stretch) for stretch in outside],
            "unknown": [places.tokens(*stretch) for stretch in unknown],
            **self._readings(i, spans, [*outside, *unknown]),
        }

    def _between(self, i: int, stretches: Iterable[Stretch]) -> list[Stretch]:
        """Find the gaps between stretches of a text, without white space at their ends."""
        n = len(self._plain[i])
        edges = sorted([(0, 0), *stretches, (n, n)])
        gaps = [self._places[i].bare(start, end) for (_, start), (end, _) in pairwise(edges)]
        return [(start, end) for start, end in gaps if start < end]

    def _readings(
        self, i: int, fixed: Sequence[Chars], outside: Sequence[Stretch]
    ) -> dict[str, Any]:
        """Return readings, best first, and alternatives for each span of the best one."""
        answer, tokens = self._loop.readings(i, fixed, outside), self._places[i].tokens
        return {
            "readings": [
                {"spans": self._on_page(i, spans), "sure": sure} for spans, sure in answer.readings
            ],
            "others": [
                [*tokens(start, end), [[self._label(y), p] for y, p in others]]
                for start, end, others in answer.others
            ],
        }

    def _on_page(self, i: int, spans: Iterable[Sequence[Any]]) -> list[list[Any]]:
        """Convert spans to tokens and numbers of labels, keeping further members."""
        tokens = self._places[i].tokens
        return [[*tokens(start, end), self._label(y), *p] for start, end, y, *p in spans]

    def _label(self, name: str) -> int:
        """Return the number of a label; -1 for no span."""
        return self._numbers[name] if name else -1

    def _progress(self) -> dict[str, Any]:
        states = [self._state(i) for i in range(len(self._texts))]
        loop = self._loop.progress()._asdict()
        estimate = loop.pop("estimate")._asdict()
        return {**estimate, **loop, "annotated": states.count("annotated"), "texts": len(states)}

    # Parsing of requests

    def _number(self, request: Request) -> int:
        if not 0 <= request.text < len(self._texts):
            reason = f"there is no text {request.text}"
            raise ValueError(CommandErrors.H545.format(reason=reason))
        return request.text

    def _spans(self, i: int, spans: Iterable[tuple[int, int, int]]) -> tuple[Chars, ...]:
        rows = sorted(spans)
        places = self._chars(i, [(start, end) for start, end, _ in rows])
        if len(places) < len(rows) or not all(0 <= y < len(self.labels) for *_, y in rows):
            reason = "a span has no words, or a label that there is not"
            raise ValueError(CommandErrors.H545.format(reason=reason))
        return tuple(
            (start, end, self.labels[y]) for (start, end), (*_, y) in zip(places, rows, strict=True)
        )

    def _chars(self, i: int, stretches: Iterable[Stretch]) -> tuple[Stretch, ...]:
        """Convert stretches of tokens to characters; those with only white space are left out."""
        try:
            places = [self._places[i].chars(*stretch) for stretch in sorted(stretches)]
        except ValueError as error:
            raise ValueError(CommandErrors.H545.format(reason=error)) from None
        return tuple((start, end) for start, end in places if start < end)
