"""Read the annotated texts of a corpus, without copies, for training and scoring."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.training import Corpus, Example

from spacy_hocrf.annotation.annotation import Annotation
from spacy_hocrf.annotation.gold import Gold
from spacy_hocrf.annotation.groups import check_group_by, group_in, register
from spacy_hocrf.annotation.spans import on_predicted, same_tokens, trimmed
from spacy_hocrf.annotation.targets import EntsTarget, SpansTarget, Target
from spacy_hocrf.annotation.weights import WEIGHT, counting
from spacy_hocrf.cli.checking import MAX_LOST, frame_of
from spacy_hocrf.cli.counts import Item, Scorer, counts_by_label
from spacy_hocrf.cli.docbins import doc_files, examples_of
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.options import BestAt
from spacy_hocrf.cli.pipelines import OVER_ENCODER, blank, numbered_keys, scorer_of
from spacy_hocrf.learning.heldout import MIN_GROUPS
from spacy_hocrf.rules.constraints import Constraints

__all__ = ["AnnotatedTexts", "AutoSetup", "read_annotated"]

MAX_GROUP_SHARE = 0.2
"""Largest share of texts that may be near copies of one text and still be held out together."""


@dataclass(frozen=True)
class AutoSetup:
    """The user's choices."""

    train: Path  # .spacy, or a folder of such files
    lang: str = "en"
    spans_key: str | None = None  # key of the annotation in doc.spans; None for doc.ents
    vectors: str | None = None  # package or folder of a pipeline that has word vectors
    group_by: str | None = None  # extension attribute of texts that are held out together
    encoder: Path | None = None  # folder of a frozen encoder
    best_at: BestAt = BestAt.FIELDS
    teachers: tuple[str, ...] = ()  # keys of doc.spans with other systems' predictions

    @property
    def factory(self) -> str:
        """Factory of the component, which is also its name."""
        return "hocrf" if self.spans_key is None else "hocrf_spans"

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the component that follow from the user's choices."""
        model = None if self.encoder is None else {"features": OVER_ENCODER}
        settings: dict[str, Any] = {"spans_key": self.spans_key, "group_by": self.group_by}
        settings |= {"model": model, "teachers": [*self.teachers] or None}
        return {name: value for name, value in settings.items() if value is not None}

    @property
    def target(self) -> Target:
        """The component's target."""
        return EntsTarget(None, False) if self.spans_key is None else SpansTarget(self.spans_key)

    @property
    def gold(self) -> Gold:
        """Reader of annotation, equal to that of the components that `create_pipe` makes."""
        return Gold(self.target, Constraints().spans_key, teachers=self.teachers)

    @property
    def scorer(self) -> Scorer:
        """Scorer of the annotated spans."""
        return scorer_of(self.target)

    def blank(self) -> Language:
        """Make a pipeline without components, except perhaps an encoder.

        RAISES (ValueError): H159, H187, H188, or H490 to H495.
        """
        return blank(self.lang, self.vectors, self.encoder)


@dataclass(frozen=True)
class AnnotatedTexts:
    """A corpus of D distinct texts, annotated with L labels."""

    examples: tuple[Example, ...]  # all of them, copies included
    distinct: tuple[Example, ...]  # [D]
    labels: tuple[str, ...]  # [L] sorted
    lengths: NDArray[np.int64]  # [D] tokens
    # [D] is every token annotated (without teachers)? Only then is a text scored
    complete: NDArray[np.bool_]
    gold: tuple[frozenset[Item], ...]  # [D] annotated items
    # near copies, and texts of a group, are scored by models that have seen none of their group
    groups: NDArray[np.int64]  # [D] number of the text's group
    gold_tokens: bool  # are the tokens those of the annotation, rather than the tokenizer's?
    notes: tuple[str, ...]  # notes for the user

    def __len__(self) -> int:
        """Number of texts D."""
        return len(self.distinct)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Annotated spans by text and label, int64 [D, L]."""
        return counts_by_label(self.gold, self.labels).astype(np.int64)

    def words(self, text: int) -> list[str]:
        """Tokens of a text, each with the white space behind it."""
        return [token.text_with_ws for token in self.distinct[text].predicted]


def read_annotated(setup: AutoSetup, nlp: Language) -> AnnotatedTexts:
    """Read a corpus.

    nlp (Language): its tokenizer makes the tokens, unless too many spans do not fit them.
    RAISES (ValueError): H257 or H381 for files without Docs, H153 to H156, H158 or H255 for texts that are
        too few, not annotated or of weight 0; H101 for a group_by that is not registered.
    """
    check_group_by(setup.group_by, setup.factory)
    reader = setup.gold
    examples, fitting = _read(setup, nlp, gold_tokens=False)
    with_gold_tokens, n_spans = _read(setup, nlp, gold_tokens=True)
    gold_tokens = n_spans - fitting > MAX_LOST * n_spans
    notes = _notes_of_tokens(setup, fitting, n_spans, gold_tokens)
    if gold_tokens:
        examples = with_gold_tokens
    distinct: dict[tuple[bytes, Hashable], Example] = {}
    for example in examples:
        group = group_in(example, setup.group_by)
        distinct.setdefault((reader.key(example.reference), group), example)
    for _ in nlp.pipe(example.predicted for example in examples):
        pass  # runs an encoder, if there is one
    pairs = [(example, reader.annotation(example)) for example in distinct.values()]
    pairs = [(example, annotation) for example, annotation in pairs if not annotation.empty]
    without_teachers = replace(reader, teachers=())
    by_hand = [without_teachers.annotation(example) for example, _ in pairs]
    gold = tuple(_items(setup, eg, hand) for (eg, _), hand in zip(pairs, by_hand))
    _check_annotation(setup, examples, gold)
    complete = np.array([hand.complete for hand in by_hand])
    with_teachers = np.array([annotation.complete for _, annotation in pairs])
    taught = int((with_teachers & ~complete).sum())
    modelled = sum(len(hand.spans) for hand in by_hand)
    copies = len(examples) - len(distinct)
    notes += _notes_of_texts(len(examples), copies, gold, complete, modelled, taught)
    groups, group_notes = _groups_of(pairs, setup.group_by)
    notes += group_notes
    n_groups = complete.sum() if setup.group_by is None else len(np.unique(groups[complete]))
    if n_groups < MIN_GROUPS:
        partly = int((~complete).sum())
        raise ValueError(
            CommandErrors.H156.format(found=int(n_groups), least=MIN_GROUPS, partly=partly)
        )
    _check_spread([items for items, whole in zip(gold, complete.tolist()) if whole])
    labels = {label for items in gold for label, _, _ in items}
    return AnnotatedTexts(
        tuple(examples),
        tuple(example for example, _ in pairs),
        tuple(sorted(labels.union(*(hand.labels for _, hand in pairs)))),
        np.array([len(hand.unknown) for _, hand in pairs], dtype=np.int64),
        complete,
        gold,
        groups,
        gold_tokens,
        tuple(notes),
    )


def _groups_of(
    pairs: Sequence[tuple[Example, Annotation]], group_by: str | None
) -> tuple[NDArray[np.int64], list[str]]:
    """Number the group of each text, by `group_by` or else of near copies; return them and notes."""
    frames = list[Hashable]()
    for example, annotation in pairs:
        words = [token.text for token in example.predicted]
        group = group_in(example, group_by)
        frame = frame_of(words, [span[:2] for span in annotation.spans]) if group is None else None
        frames.append(frame if group is None else ("group", group))
    groups = numbered_keys(frames)
    n_groups = len(set(groups.tolist()))
    if group_by is not None:
        note = f"{len(groups)} texts are of {n_groups} groups (group_by = '{group_by}')"
        return groups, [f"{note}, scored by models that have seen none of their group."]
    copies, largest = len(groups) - n_groups, int(np.bincount(groups).max())
    if not copies:
        return groups, []
    note = f"{copies} of {len(groups)} texts are near copies of others, equal but for names and numbers."
    if largest > MAX_GROUP_SHARE * len(groups):
        note += f" {largest} are copies of one, so they are scored by models that have seen such"
        return np.arange(len(groups)), [f"{note}: on texts made otherwise F1 may be lower."]
    return groups, [f"{note} They were scored by models that have seen none of their kind."]


def _read(setup: AutoSetup, nlp: Language, *, gold_tokens: bool) -> tuple[list[Example], int]:
    """Read the corpus, without texts of weight 0, and count the spans that fit the tokens."""
    files = doc_files(setup.train)
    read = examples_of(Corpus(setup.train, gold_preproc=gold_tokens), nlp, lambda: files)
    if not read:
        raise ValueError(CommandErrors.H158.format(path=setup.train))
    register(WEIGHT)
    examples = counting(read)
    return examples, sum(len(setup.target.annotation(example).spans) for example in examples)


def _items(setup: AutoSetup, example: Example, annotation: Annotation) -> frozenset[Item]:
    """Annotated items on the tokens of the model, including spans that overlap others."""
    items = frozenset((label, start, end) for start, end, label in annotation.spans)
    if same_tokens(example):
        return items.union(setup.scorer.items(example.reference))
    group = example.reference.spans.get(setup.spans_key) if setup.spans_key else None
    fitting = on_predicted(example, list(group or ()), overlap=True)
    spans = trimmed(example.predicted, fitting)
    return items.union((label, start, end) for start, end, label in spans)


def _check_annotation(
    setup: AutoSetup, examples: Sequence[Example], gold: Sequence[frozenset[Item]]
) -> None:
    if any(gold):
        return
    if setup.spans_key is None or any(setup.scorer.annotated(eg.reference) for eg in examples):
        place = setup.scorer.place
        raise ValueError(CommandErrors.H153.format(found=len(examples), place=place))
    keys = sorted({key for example in examples for key in example.reference.spans})
    names = ", ".join(keys) or "none"
    raise ValueError(CommandErrors.H154.format(key=setup.spans_key, known=names))


def _check_spread(gold: Sequence[frozenset[Item]]) -> None:
    """Check labels. RAISES (ValueError): H155 if none is in two texts, one to train and one to score on."""
    texts = _texts_by_label(gold)
    if max(texts.values(), default=0) < 2:
        raise ValueError(CommandErrors.H155.format(found=len(texts)))


def _texts_by_label(gold: Sequence[frozenset[Item]]) -> Counter[str]:
    return Counter(label for items in gold for label in {label for label, _, _ in items})


def _notes_of_tokens(setup: AutoSetup, fitting: int, n_spans: int, gold_tokens: bool) -> list[str]:
    lost = n_spans - fitting
    if not lost:
        return []
    lost_spans = f"{lost} of {n_spans} annotated spans do not fit the tokens of spaCy's tokenizer"
    if gold_tokens:
        return [
            f"{lost_spans} ({setup.lang}). So the model learns and was scored on the tokens of the "
            "annotation (gold_preproc = true in the config), and should be given such tokens: "
            "nlp(Doc(nlp.vocab, words=[...])). If the texts are in another language, name it with --lang."
        ]
    return [f"{lost_spans} ({setup.lang}). Their tokens are unknown to the model, and not scored."]


def _notes_of_texts(
    examples: int,
    copies: int,
    gold: Sequence[frozenset[Item]],
    complete: NDArray[np.bool_],
    modelled: int,
    taught: int,
) -> list[str]:
    empty, partial = examples - copies - len(gold), int((~complete).sum()) - taught
    overlapping = max(0, sum(map(len, gold)) - modelled) if complete.all() else 0
    counts = {
        f"of {examples} texts have no annotation at all and are left out.": empty,
        f"of {examples} texts are copies of others. The model learns from all of them, and each was scored "
        "once, by models that have seen none of its copies.": copies,
        f"of {len(gold)} texts are not annotated, or not completely: teachers say what is in them. The model "
        "learns from them, and is not scored on them.": taught,
        f"of {len(gold)} texts are annotated in part: the model learns from them, and is not scored on "
        "them.": partial,
        "annotated spans overlap longer ones. A segmentation has no place for them; they count as missed: "
        "see docs/data.md#spans-inside-spans.": overlapping,
    }
    notes = [f"{count} {what}" for what, count in counts.items() if count]
    rare = sorted(label for label, texts in _texts_by_label(gold).items() if texts == 1)
    if rare:
        notes.append(
            f"These labels are in one text only, so nothing can be said about them: {', '.join(rare)}."
        )
    return notes
