"""Texts that a person annotates one after the other: what is decided about each, what was before, and which
comes next. The page speaks of tokens and numbers of labels; here they become characters and names.
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
from spacy_hocrf.cli.label.store import Chars, Decision, DecisionStore, check

__all__ = ["Conflict", "Request", "Session", "TextToLabel"]

SHOWN, BEGINNING = 50, 160
"""Texts that a search shows, and characters of each."""

GIVEN = {"given": True}
"""What the loop is told of annotation that no one has made here."""


class TextToLabel(NamedTuple):
    """A text, and what its file says about it.

    words (Sequence[str]): its tokens, each with the white space behind it.
    id (str): that the file gives it, or "".
    spans (Optional[tuple[Chars, ...]]): that are annotated already; None if nobody has looked for any.
    unknown (tuple[tuple[int, int], ...]): stretches that nobody has annotated, if others are.
    """

    words: Sequence[str]
    id: str = ""
    spans: tuple[Chars, ...] | None = None
    unknown: tuple[Stretch, ...] = ()


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a window of the page asks, by tokens and numbers of labels; every request has some of it.

    window (int): its number. text (int): of which text. revision (int): of the text, as it was shown.
    spans (list[tuple[int, int, int]]), outside, unknown (list[tuple[int, int]]): what the person has said.
    words (str): to be searched for.
    """

    window: int = 0
    text: int = -1
    revision: int = 0
    spans: list[tuple[int, int, int]] = []
    outside: list[tuple[int, int]] = []
    unknown: list[tuple[int, int]] = []
    words: str = ""


class Conflict(ValueError):
    """H546 or H547: a request that came too late."""


class Session:
    """Texts, the decisions about them, and the loop that learns from those.

    texts (Sequence[TextToLabel]): the texts. labels (Sequence[str]): that their spans may have.
    store (DecisionStore): where decisions are kept; those of earlier sessions are told to the loop.
    loop (LabelLoop): what reads texts and chooses the next one.
    export (Callable[[list[TextToLabel]], str]): writes what is annotated, and says where.
    lang (str): language of the texts, as HTML has it.
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
        self._held = list[Decision]()  # that hold, in their order
        self._own: dict[int, list[Decision]] = defaultdict(list)  # the same, by text
        self._revisions = [0] * len(texts)
        for decision in store.decisions:
            self._note(decision)
        for i, given in self._given.items():
            loop.decide(i, given.spans or (), given.unknown, GIVEN)
        for i in dict.fromkeys(each.text for each in self._held):
            self._tell(i)

    @property
    def widened(self) -> int:
        """Spans of earlier sessions that are no whole tokens now, and are shown and written as such."""
        stretches = [(each.text, *span[:2]) for each in self._held for span in each.spans or ()]
        return sum(
            self._places[i].chars(*self._places[i].tokens(start, end)) != (start, end)
            for i, start, end in stretches
        )

    # What a window asks: each method answers a request

    def open(self, _: Request) -> dict[str, Any]:
        """A new window, from now on the only one that may decide, and its first text."""
        with self._lock:
            self._window += 1
            own = {"window": self._window, "labels": [*self.labels], "lang": self.lang}
            return own | self._next()

    def show(self, request: Request) -> dict[str, Any]:
        """A text as it is now."""
        with self._lock:
            return {"view": self._view(self._number(request))}

    def read(self, request: Request) -> dict[str, Any]:
        """Readings of a text beside what the person has said so far."""
        with self._lock:
            i = self._number(request)
            outside = [*request.outside, *request.unknown]
            return self._readings(i, self._spans(i, request.spans), self._chars(i, outside))

    def decide(self, request: Request) -> dict[str, Any]:
        """Keep the spans of a text; and the next text."""
        return self._decided(
            request, lambda i: (self._spans(i, request.spans), self._chars(i, request.unknown))
        )

    def skip(self, request: Request) -> dict[str, Any]:
        """Leave a text for later; and the next text."""
        return self._decided(request, lambda _: (None, ()))

    def undo(self, request: Request) -> dict[str, Any]:
        """Take the last decision back, and show its text as it was decided."""
        with self._lock:
            self._check_window(request)
            if not self._held:
                return {"view": None}
            last = self._held[-1]
            self._keep(Decision(last.text, undone=True))
            self._tell(last.text)
            return {"view": self._view(last.text, last)}

    def search(self, request: Request) -> dict[str, Any]:
        """Texts that have some words: those that were decided last come first, then those not decided."""
        with self._lock:
            words = normalize("NFC", request.words).casefold()
            decided = dict.fromkeys(each.text for each in reversed(self._held))
            order = [*decided, *(i for i in range(len(self._texts)) if i not in decided)]
            rows = list[dict[str, Any]]()
            for i in order:
                text = normalize("NFC", self._plain[i])
                at = text.casefold().find(words)
                if at >= 0 and len(rows) < SHOWN:
                    first = max(0, at - BEGINNING // 4)
                    begin = "…" * (first > 0) + text[first : first + BEGINNING]
                    rows.append({"text": i, "begin": begin, "state": self._state(i)})
            return {"rows": rows}

    def progress(self, _: Request) -> dict[str, Any]:
        """How far the annotation is."""
        with self._lock:
            return self._progress()

    def export(self, _: Request) -> dict[str, Any]:
        """Write all that is annotated, and the model."""
        return {"told": self.export_all()}

    def export_all(self) -> str:
        """Write all that is annotated, and the model. RETURNS (str): what was written, for people."""
        with self._lock:
            decisions = map(self._decision, range(len(self._texts)))
            texts = [
                text._replace(spans=d.spans if d else None, unknown=d.unknown if d else ())
                for text, d in zip(self._texts, decisions, strict=True)
            ]
        with self._exporting:
            return self._export(texts)

    # Decisions

    def _decided(
        self,
        request: Request,
        said: Callable[[int], tuple[tuple[Chars, ...] | None, tuple[Stretch, ...]]],
    ) -> dict[str, Any]:
        """RAISES (Conflict): H546 or H547 if it comes too late.

        RAISES (ValueError): H544 if it cannot be kept, H545 if it is wrong.
        """
        with self._lock:
            self._check_window(request)
            i = self._number(request)
            if request.revision != self._revisions[i]:
                raise Conflict(CommandErrors.H547.format(number=i + 1))
            spans, unknown = said(i)
            before, new = self._decision(i), Decision(i, spans, unknown)
            try:
                check(new, self._plain)
            except ValueError as error:
                raise ValueError(CommandErrors.H545.format(reason=error)) from None
            if before is None or (before.spans, before.unknown) != (spans, unknown):
                self._decide(new)
            return self._next()

    def _decide(self, new: Decision) -> None:
        """Let the loop know, and keep the decision together with what the loop says of it."""
        if new.spans is None:
            self._keep(new)
            self._loop.withdraw(new.text)
            return
        facts = self._loop.decide(new.text, new.spans, new.unknown)
        try:
            self._keep(Decision(new.text, new.spans, new.unknown, facts=facts))
        except ValueError:
            self._tell(new.text)
            raise

    def _tell(self, i: int) -> None:
        """Let the loop know what holds of a text."""
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
        """What holds of a text: a person's last word, else what the file says."""
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

    # Texts as the page has them

    def _next(self) -> dict[str, Any]:
        """The next text, if there is one, and how far the annotation is."""
        done = {i for i in range(len(self._texts)) if self._state(i) != "open"}
        text, why = self._loop.next(done)
        view = None if text is None else self._view(text) | {"why": why}
        return {"view": view, "progress": self._progress()}

    def _view(self, i: int, decision: Decision | None = None) -> dict[str, Any]:
        """A text, what is said about it, and its readings beside that. decision: None for what holds."""
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
            "outside": [places.tokens(*each) for each in outside],
            "unknown": [places.tokens(*each) for each in unknown],
            **self._readings(i, spans, [*outside, *unknown]),
        }

    def _between(self, i: int, stretches: Iterable[Stretch]) -> list[Stretch]:
        """What a text has beside stretches of it, but for white space."""
        n = len(self._plain[i])
        edges = sorted([(0, 0), *stretches, (n, n)])
        gaps = [self._places[i].bare(start, end) for (_, start), (end, _) in pairwise(edges)]
        return [(start, end) for start, end in gaps if start < end]

    def _readings(
        self, i: int, fixed: Sequence[Chars], outside: Sequence[Stretch]
    ) -> dict[str, Any]:
        """Readings, best first, and what else each stretch of the best one could be."""
        found, tokens = self._loop.readings(i, fixed, outside), self._places[i].tokens
        return {
            "readings": [
                {"spans": self._on_page(i, spans), "sure": sure} for spans, sure in found.readings
            ],
            "others": [
                [*tokens(start, end), [[self._label(y), p] for y, p in others]]
                for start, end, others in found.others
            ],
        }

    def _on_page(self, i: int, spans: Iterable[Sequence[Any]]) -> list[list[Any]]:
        """Spans by tokens and numbers of labels, with what follows these."""
        tokens = self._places[i].tokens
        return [[*tokens(start, end), self._label(y), *p] for start, end, y, *p in spans]

    def _label(self, name: str) -> int:
        """Number of a label; -1 for no span."""
        return self._numbers[name] if name else -1

    def _progress(self) -> dict[str, Any]:
        states = [self._state(i) for i in range(len(self._texts))]
        told: dict[str, Any] = self._loop.progress()._asdict()
        return told | {"annotated": states.count("annotated"), "texts": len(states)}

    # What a request says

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
        """Characters of stretches of tokens; those of nothing but white space are left out."""
        try:
            found = [self._places[i].chars(*each) for each in sorted(stretches)]
        except ValueError as error:
            raise ValueError(CommandErrors.H545.format(reason=error)) from None
        return tuple((start, end) for start, end in found if start < end)
