"""Statistics of an annotated corpus as a component reads it, and of the annotation that the model cannot
learn.

Near copies are texts that differ only in names and numbers, as when many are made from one template. The rest
of a text is its frame: the words without a digit and without a capital letter, outside of annotated spans. If
spans cover nearly all of a text, as in a reference, words within them belong to the frame, too. A text with
hardly any frame, such as an address, is a near copy of none.

The share of unknown words alone does not tell how unlike two corpora are, since it falls with the size of the
first. So it is compared with the share of the first corpus's words that occur in only one of its texts, which
is about the share of unknown words in more texts of the same kind.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_hocrf.annotation.annotation import runs
from spacy_hocrf.annotation.gold import Gold
from spacy_hocrf.annotation.spans import on_predicted
from spacy_hocrf.annotation.targets import SpansTarget, TagsTarget, Target
from spacy_hocrf.cli.pipelines import scorer_of

__all__ = [
    "MAX_LOST",
    "CorpusFacts",
    "Frame",
    "LabelFacts",
    "Misaligned",
    "Repeats",
    "Seen",
    "cut_docs",
    "facts_of",
    "frame_of",
    "known_texts",
    "repeats_of",
    "seen_in",
]

Frame = tuple[str, ...]
MIN_FRAME_WORDS = 2
"""Fewest words of a frame."""
MIN_FRAME_SHARE = 1 / 3
"""Smallest share of a text's words that makes a frame."""
MAX_LOST = 0.01
"""Share of spans that fit no tokens from which on the tokenizer does not fit the annotation."""
GAP = ""
"""Stands for the words left out between two words of a frame."""


@dataclass
class LabelFacts:
    """Statistics of one label of a corpus."""

    annotated: int = 0  # spans
    learnt: int = 0  # spans that the model learns from, as they fit its tokens
    texts: int = 0  # texts with such a span
    lengths: Counter[int] = field(default_factory=Counter)  # in the model's tokens

    @property
    def longest(self) -> int:
        """Length of the longest span in tokens; 0 if there is none."""
        return max(self.lengths, default=0)


@dataclass(frozen=True)
class Misaligned:
    """A span that does not align with tokens."""

    text: str
    label: str
    words: tuple[str, ...]  # the model's tokens where it is


@dataclass
class CorpusFacts:
    """Statistics of a corpus as a component reads it."""

    texts: int = 0
    tokens: int = 0
    unannotated: int = 0  # texts without any annotation
    taught: int = 0  # texts that only teachers annotate completely
    partial: int = 0  # partially annotated texts
    copies: int = 0  # texts equal to an earlier one
    contradicted: int = 0  # copies that are annotated otherwise than the first one
    near_copies: int = 0  # other texts that differ from an earlier one only in names and numbers
    unknown_spaces: int = 0  # texts whose Doc has unknown spaces
    touching: int = 0  # texts in which two spans of one label touch
    overlapping: int = 0  # spans that overlap longer ones
    blank_ends: int = 0  # spans that begin or end with white space
    labels: dict[str, LabelFacts] = field(default_factory=dict)
    # by label, texts in which only constraints name it
    hints: Counter[str] = field(default_factory=Counter)
    # spans that fit no tokens of the tokenizer
    lost: list[Misaligned] = field(default_factory=list)

    @property
    def annotated(self) -> int:
        """Number of spans of all labels."""
        return sum(label.annotated for label in self.labels.values())

    @property
    def misfits(self) -> int:
        """Number of spans, or tags, that do not align with tokens."""
        learnt = sum(label.learnt for label in self.labels.values())
        return max(0, self.annotated - learnt - self.overlapping)


@dataclass(frozen=True)
class Seen:
    """Shares of the tokens and of the annotated spans of some texts that also occur in others."""

    words: float  # tokens, compared by NORM
    spans: float  # spans with the same words and label
    texts: float  # spans with the same words and any label
    n_spans: int


@dataclass(frozen=True)
class Repeats:
    """Annotated phrases that also occur without annotation."""

    phrases: int  # distinct annotated phrases
    # those that also occur where nothing is annotated, the most frequent first
    unmarked: tuple[str, ...]


def facts_of(gold: Gold, examples: Iterable[Example]) -> CorpusFacts:
    """Collect the statistics of a corpus.

    gold (Gold): how the component reads its annotation.
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
        annotation, with_teachers = target.annotation(example), gold.annotation(example)
        items = Counter(label for label, _, _ in scorer.items(example.reference))
        if annotation.complete:
            spans_digest = hash(frozenset(annotation.spans))
            facts.contradicted += first.setdefault(digest, spans_digest) != spans_digest
        is_taught = bool(gold.teachers) and not annotation.complete and with_teachers.complete
        if is_taught:
            facts.taught += 1
            annotation, items = with_teachers, Counter(label for _, _, label in with_teachers.spans)
        words = [token.text for token in example.predicted]
        if frame := frame_of(words, [span[:2] for span in annotation.spans]):
            facts.near_copies += hash(frame) in frames and not copied
            frames.add(hash(frame))
        facts.unannotated += with_teachers.empty and not scorer.annotated(example.reference)
        facts.partial += not with_teachers.empty and not with_teachers.complete
        facts.touching += annotation.repeats and not isinstance(target, TagsTarget)
        facts.hints.update({*with_teachers.labels} - {*annotation.labels})
        learnt = Counter(label for _, _, label in annotation.spans)
        for label in items | learnt:
            label_facts = facts.labels.setdefault(label, LabelFacts())
            label_facts.annotated += items[label]
            label_facts.learnt += learnt[label]
            label_facts.texts += 1
        for start, end, label in annotation.spans:
            facts.labels[label].lengths[end - start] += 1
        if not isinstance(target, TagsTarget) and not is_taught:
            _note_spans(facts, target, example, len(annotation.spans))
    return facts


def _note_spans(facts: CorpusFacts, target: Target, example: Example, learnt: int) -> None:
    """Count the annotated spans that the model reads differently, or not at all."""
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


def _lost(example: Example, spans: Sequence[Span]) -> Iterator[Misaligned]:
    for span in spans:
        if not on_predicted(example, [span]):
            tokens = sorted(
                {i for j in range(span.start, span.end) for i in example.alignment.y2x[j]}
            )
            words = tuple(example.predicted[int(i)].text for i in tokens)
            yield Misaligned(span.text, span.label_, words)


def known_texts(examples: Sequence[Example], others: Sequence[Example]) -> int:
    """Count the texts of one corpus that are also in another."""
    texts = {example.reference.text for example in others}
    return sum(example.reference.text in texts for example in examples)


def seen_in(
    target: Target, others: Sequence[Example], examples: Sequence[Example] | None = None
) -> Seen:
    """Find how much of some examples also occurs in others.

    target (Target): where spans, or tags, are.
    examples (Optional[Sequence[Example]]): None for how much of each other one occurs in the rest.
    """
    of_others = [_items(target, example) for example in others]
    rows = of_others if examples is None else [_items(target, example) for example in examples]
    words, spans, texts = (
        _share(
            [row[kind] for row in of_others], [row[kind] for row in rows], 1 + (examples is None)
        )
        for kind in range(3)
    )
    return Seen(words, spans, texts, sum(len(row[1]) for row in rows))


def _share(others: list[list[Any]], examples: list[list[Any]], least: int) -> float:
    """Share of the items of examples that occur in at least `least` others."""
    counts = Counter(item for items in others for item in {*items})
    is_seen = [counts[item] >= least for items in examples for item in items]
    return sum(is_seen) / max(1, len(is_seen))


def _items(target: Target, example: Example) -> tuple[list[Any], ...]:
    """The words of an example, its spans with labels, and its spans without labels."""
    words = [token.norm_ for token in example.predicted]
    spans = [(tuple(words[a:b]), label) for a, b, label in target.annotation(example).spans]
    return words, spans, [text for text, _ in spans]


def repeats_of(target: Target, examples: Iterable[Example]) -> Repeats:
    """Find the annotated phrases that also occur where tokens are known to be in no span.

    target (Target): where spans are.
    """
    phrases, gaps = set[tuple[str, ...]](), list[list[str]]()
    for example in examples:
        annotation = target.annotation(example)
        words, inside = [token.text for token in example.predicted], annotation.unknown.copy()
        for start, end, _ in annotation.spans:
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
    """Count the Docs that `gold_preproc = true` splits: those with several sentences."""
    return sum(doc.has_annotation("SENT_START") and len(list(doc.sents)) > 1 for doc in docs)


def frame_of(words: Sequence[str], spans: Iterable[tuple[int, int]]) -> Frame | None:
    """Return the frame of a text: its words other than names and numbers.

    words (Sequence[str]): its tokens.
    spans (Iterable[tuple[int, int]]): start and end of the annotated spans.
    RETURNS (Optional[tuple[str, ...]]): the words, GAP where some are left out; None if too few are left.
    """
    plain = [_plain(word) for word in words]
    outside = list(plain)
    for start, end in spans:
        outside[start:end] = [False] * (end - start)
    least = max(
        MIN_FRAME_WORDS, MIN_FRAME_SHARE * sum(any(map(str.isalnum, word)) for word in words)
    )
    for kept in (outside, plain):
        if sum(kept) >= least:
            return _joined(words, kept)
    return None


def _plain(word: str) -> bool:
    """Is a word neither a name, nor a number, nor punctuation?"""
    return any(map(str.isalpha, word)) and not any(c.isdigit() or c.isupper() for c in word)


def _joined(words: Sequence[str], kept: Sequence[bool]) -> Frame:
    frame: list[str] = []
    for word, keep in zip(words, kept):
        if keep:
            frame.append(word)
        elif any(map(str.isalnum, word)) and frame[-1:] != [GAP]:
            frame.append(GAP)
    return tuple(frame)
