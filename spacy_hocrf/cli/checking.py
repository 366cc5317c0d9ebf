"""What an annotated corpus holds for a component, and what of it gets lost on the way to the model.

Near copies are texts that are the same but for names and numbers, as when many are made from one. What a text
has besides is its frame: the words without a digit and without a capital letter, outside of annotated spans.
Where spans take up nearly all, as in a reference, words within them are a part of it, too. A text of which
hardly anything is left, such as an address, is like no other.

How unlike two corpora are cannot be told from the share of unknown words alone, which falls with the size of
the first. So it is compared with the share of its own words that only one of its texts has: about what it
would be if the second were more of the same.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_hocrf.annotation.annotation import runs
from spacy_hocrf.annotation.gold import Gold
from spacy_hocrf.annotation.spans import on_predicted
from spacy_hocrf.annotation.targets import SpansTarget, TagsTarget, Target
from spacy_hocrf.cli.pipelines import scorer_of

__all__ = [
    "CorpusFacts",
    "Frame",
    "LabelFacts",
    "Lost",
    "Repeats",
    "Seen",
    "cut_docs",
    "facts_of",
    "frame_of",
    "grouped",
    "known_texts",
    "repeats_of",
    "seen_in",
]

Frame = tuple[str, ...]
LEAST = 2
"""Words of a frame."""
SHARE = 1 / 3
"""Of a text's words, so many at least are in its frame."""
GAP = ""
"""Stands for what is left out between two words."""


@dataclass
class LabelFacts:
    """One label of a corpus."""

    annotated: int = 0  # spans
    learnt: int = 0  # of these, in the tokens and as the model has them
    texts: int = 0  # with such a span
    lengths: Counter[int] = field(default_factory=Counter)  # in the model's tokens

    @property
    def longest(self) -> int:
        """Tokens of the longest span; 0 without any."""
        return max(self.lengths, default=0)


@dataclass(frozen=True)
class Lost:
    """A span that fits no tokens."""

    text: str
    label: str
    words: tuple[str, ...]  # the model's tokens where it is


@dataclass
class CorpusFacts:
    """A corpus as a component reads it."""

    texts: int = 0
    tokens: int = 0
    unannotated: int = 0  # texts without any annotation
    taught: int = 0  # texts of which teachers say what is not annotated
    partial: int = 0  # texts of which something is known, but not all
    copies: int = 0  # texts with the words of an earlier one
    contradicted: int = 0  # of these, those that an earlier one with other annotation contradicts
    near_copies: int = 0  # other texts that are an earlier one but for names and numbers
    unknown_spaces: int = 0  # texts whose file does not tell where spaces are
    touching: int = 0  # texts in which two spans of one label touch
    overlapping: int = 0  # spans that overlap longer ones
    blank_ends: int = 0  # spans that begin or end with white space
    labels: dict[str, LabelFacts] = field(default_factory=dict)
    # by label, texts of which constraints alone name it
    hints: Counter[str] = field(default_factory=Counter)
    lost: list[Lost] = field(default_factory=list)  # by the tokenizer

    @property
    def annotated(self) -> int:
        """Spans of all labels."""
        return sum(label.annotated for label in self.labels.values())

    @property
    def misfits(self) -> int:
        """Spans, or tags, that fit no tokens."""
        learnt = sum(label.learnt for label in self.labels.values())
        return max(0, self.annotated - learnt - self.overlapping)


@dataclass(frozen=True)
class Seen:
    """How much of some texts is in others: shares of their tokens, and of their annotated spans."""

    words: float  # by NORM
    spans: float  # text and label
    texts: float  # whatever the label
    n_spans: int


@dataclass(frozen=True)
class Repeats:
    """Annotated phrases that stand elsewhere without annotation."""

    phrases: int  # different words of annotated spans
    unmarked: tuple[
        str, ...
    ]  # of these, those that stand where nothing is annotated, the most frequent first


def facts_of(gold: Gold, examples: Iterable[Example]) -> CorpusFacts:
    """Look through a corpus.

    gold (Gold): what a component reads of it.
    """
    target = gold.target
    facts, scorer, seen = CorpusFacts(), scorer_of(target), set[int]()
    frames, first = set[int](), dict[int, int]()  # annotation of whole texts, by their words
    for example in examples:
        facts.texts += 1
        facts.tokens += len(example.predicted)
        digest = hash(example.reference.text)
        copied = digest in seen
        facts.copies += copied
        seen.add(digest)
        facts.unknown_spaces += bool(example.reference.has_unknown_spaces)
        found, told = target.annotation(example), gold.annotation(example)
        items = Counter(label for label, _, _ in scorer.items(example.reference))
        if found.complete:
            annotation = hash(frozenset(found.spans))
            facts.contradicted += first.setdefault(digest, annotation) != annotation
        is_taught = bool(gold.teachers) and not found.complete and told.complete
        if is_taught:
            facts.taught += 1
            found, items = told, Counter(label for _, _, label in told.spans)
        words = [token.text for token in example.predicted]
        if frame := frame_of(words, [span[:2] for span in found.spans]):
            facts.near_copies += hash(frame) in frames and not copied
            frames.add(hash(frame))
        facts.unannotated += told.empty and not scorer.annotated(example.reference)
        facts.partial += not told.empty and not told.complete
        facts.touching += found.repeats and not isinstance(target, TagsTarget)
        facts.hints.update({*told.labels} - {*found.labels})
        learnt = Counter(label for _, _, label in found.spans)
        for label in items | learnt:
            known = facts.labels.setdefault(label, LabelFacts())
            known.annotated += items[label]
            known.learnt += learnt[label]
            known.texts += 1
        for start, end, label in found.spans:
            facts.labels[label].lengths[end - start] += 1
        if not isinstance(target, TagsTarget) and not is_taught:
            _note_spans(facts, target, example, len(found.spans))
    return facts


def _note_spans(facts: CorpusFacts, target: Target, example: Example, learnt: int) -> None:
    """Count the spans that the model gets otherwise than they are annotated, or not at all."""
    spans = _spans_of(target, example.reference)
    facts.blank_ends += sum(span[0].is_space or span[-1].is_space for span in spans if len(span))
    if learnt == len(spans):
        return
    lost = list(_lost(example, spans))
    facts.lost += lost
    facts.overlapping += len(spans) - learnt - len(lost)


def _spans_of(target: Target, doc: Doc) -> Sequence[Span]:
    if not isinstance(target, SpansTarget):
        return doc.ents
    return list(doc.spans[target.spans_key]) if target.spans_key in doc.spans else []


def _lost(example: Example, spans: Sequence[Span]) -> Iterator[Lost]:
    for span in spans:
        if not on_predicted(example, [span]):
            tokens = sorted(
                {i for j in range(span.start, span.end) for i in example.alignment.y2x[j]}
            )
            words = tuple(example.predicted[int(i)].text for i in tokens)
            yield Lost(span.text, span.label_, words)


def known_texts(here: Sequence[Example], there: Sequence[Example]) -> int:
    """How many texts of one corpus are in another."""
    known = {example.reference.text for example in there}
    return sum(example.reference.text in known for example in here)


def seen_in(
    target: Target, there: Sequence[Example], here: Sequence[Example] | None = None
) -> Seen:
    """How much of a corpus was seen in another one.

    target (Target): where spans, or tags, are.
    there, here (Sequence[Example], Optional[Sequence[Example]]): both; without the second, how much of each
        text of the first is in another text of it.
    """
    of_texts = [_items(target, example) for example in there]
    rows = of_texts if here is None else [_items(target, example) for example in here]
    words, spans, texts = (
        _share([row[kind] for row in of_texts], [row[kind] for row in rows], 1 + (here is None))
        for kind in range(3)
    )
    return Seen(words, spans, texts, sum(len(row[1]) for row in rows))


def _share(there: list[list[Any]], here: list[list[Any]], least: int) -> float:
    """Share of the items of some texts, `here`, that at least so many texts of `there` have."""
    known = Counter(item for items in there for item in {*items})
    found = [known[item] >= least for items in here for item in items]
    return sum(found) / max(1, len(found))


def _items(target: Target, example: Example) -> tuple[list[Any], ...]:
    """Words, spans with their labels, and without."""
    words = [token.norm_ for token in example.predicted]
    spans = [(tuple(words[a:b]), label) for a, b, label in target.annotation(example).spans]
    return words, spans, [text for text, _ in spans]


def repeats_of(target: Target, examples: Iterable[Example]) -> Repeats:
    """Which annotated phrases stand elsewhere in tokens that are known to be in no span.

    target (Target): where spans are.
    """
    phrases, gaps = set[tuple[str, ...]](), list[list[str]]()
    for example in examples:
        found = target.annotation(example)
        words, inside = [token.text for token in example.predicted], found.unknown.copy()
        for start, end, _ in found.spans:
            phrases.add(tuple(words[start:end]))
            inside[start:end] = True
        gaps += ([words[i] for i in range(*gap)] for gap in runs(~inside))
    longest = max(map(len, phrases), default=0)
    unmarked = Counter[str]()
    for gap in gaps:
        for start in range(len(gap)):
            for end in range(start + 1, min(len(gap), start + longest) + 1):
                if (phrase := tuple(gap[start:end])) in phrases:
                    unmarked[" ".join(phrase)] += 1
    return Repeats(len(phrases), tuple(phrase for phrase, _ in unmarked.most_common()))


def cut_docs(docs: Sequence[Doc]) -> int:
    """How many Docs `gold_preproc = true` cuts: those with several sentences."""
    return sum(doc.has_annotation("SENT_START") and len(list(doc.sents)) > 1 for doc in docs)


def frame_of(words: Sequence[str], spans: Iterable[tuple[int, int]]) -> Frame | None:
    """The words of a text besides names and numbers.

    words (Sequence[str]): its tokens.
    spans (Iterable[tuple[int, int]]): start and end of what is annotated.
    RETURNS (Optional[tuple[str, ...]]): None if too little is left.
    """
    plain = [_plain(word) for word in words]
    outside = list(plain)
    for start, end in spans:
        outside[start:end] = [False] * (end - start)
    least = max(LEAST, SHARE * sum(any(map(str.isalnum, word)) for word in words))
    for kept in (outside, plain):
        if sum(kept) >= least:
            return _joined(words, kept)
    return None


def grouped(frames: Sequence[Hashable]) -> NDArray[np.int64]:
    """The number of each text's group of near copies, int64 [D], by first appearance."""
    known: dict[Hashable, int] = {}
    keys = [i if frame is None else frame for i, frame in enumerate(frames)]
    return np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)


def _plain(word: str) -> bool:
    """Neither a name nor a number, nor a mark?"""
    return any(map(str.isalpha, word)) and not any(c.isdigit() or c.isupper() for c in word)


def _joined(words: Sequence[str], kept: Sequence[bool]) -> Frame:
    frame: list[str] = []
    for word, keep in zip(words, kept):
        if keep:
            frame.append(word)
        elif any(map(str.isalnum, word)) and frame[-1:] != [GAP]:
            frame.append(GAP)
    return tuple(frame)
