"""Constraints in training: both sums of the loss

    log Z(constraints) - log Z(constraints, annotation)

are over the segmentations that satisfy them. A document whose annotation cannot satisfy them has probability
0 for all weights, and teaches nothing. Constraints of single texts are annotation: they restrict the second
sum only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from spacy_hocrf.annotation.annotation import constrain_batch
from spacy_hocrf.answers.forbidden import agreeing
from spacy_hocrf.arrays import offsets_of, stretches
from spacy_hocrf.engine.automaton import compile_automaton
from spacy_hocrf.engine.forbidden import Observed
from spacy_hocrf.model.structure import BATCH_TOKENS
from spacy_hocrf.rules.compiled import MAX_JOINT_STATES, CompiledRules
from spacy_hocrf.rules.errors import ConstraintErrors
from spacy_hocrf.types import Potentials

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spacy_hocrf.annotation.annotation import Annotation
    from spacy_hocrf.annotation.documents import Document
    from spacy_hocrf.engine.automaton import Automaton
    from spacy_hocrf.features.tokens import TokenBatch
    from spacy_hocrf.learning.corpus import Corpus
    from spacy_hocrf.model.structure import Structure
    from spacy_hocrf.types import LabelPattern

__all__ = [
    "TrainingRules",
    "allowed_in",
    "automaton_of",
    "check_constraints",
    "observed_in",
    "satisfiable",
]


class TrainingRules:
    """The constraints that the training of one model observes.

    rules (CompiledRules): the constraints of its predictions.

    automaton (Automaton): automaton of the segmentations that satisfy them; it remembers the rules of
        infinite price if training observes these.
    RAISES (ValueError): H221 if that takes too many states.
    """

    def __init__(self, rules: CompiledRules) -> None:
        self.rules = rules
        keeps_rules = rules.constraints.training == "all"
        self._numbers = tuple(np.flatnonzero(rules.hard).tolist()) if keeps_rules else ()
        if not rules.fits(self._numbers):
            raise ValueError(ConstraintErrors.H221.format(most=MAX_JOINT_STATES))
        self.automaton = rules.product(rules.automaton, self._numbers)

    def compile(self, patterns: Sequence[LabelPattern]) -> Automaton:
        """Compile the automaton with other label patterns."""
        return self.rules.product(self.rules.compile(patterns), self._numbers)

    def constrained(self, tokens: TokenBatch, bits: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the bits of a batch, uint8 [N, Y], without labels forbidden at the edges of a text."""
        constrained: NDArray[np.uint8] = bits.copy()
        self.rules.successions.clear_edges(constrained, tokens)
        return constrained

    def fits(
        self, tokens: TokenBatch, free: NDArray[np.uint8], annotations: Sequence[Annotation]
    ) -> NDArray[np.bool_]:
        """Can the annotation of D sequences satisfy the constraints? bool [D]; True where no segmentation of
        the model agrees with it in the first place.

        free (uint8 [N, Y]): bits that the model allows.
        """
        fits = _possible(self.observed(tokens, free, annotations), tokens.offsets, self.automaton)
        if not fits.all():
            without_rules = constrain_batch(self.rules.scheme, free, tokens.offsets, annotations)
            fits |= ~_possible(Observed(without_rules), tokens.offsets, self.rules.model_automaton)
        return fits

    def observed(
        self, tokens: TokenBatch, free: NDArray[np.uint8], annotations: Sequence[Annotation]
    ) -> Observed:
        """Return the segmentations that agree with the annotation of D sequences and satisfy the constraints.

        free (uint8 [N, Y]): bits that the model allows.
        """
        patterns, offsets = self.rules.model_automaton.patterns, tokens.offsets
        observed = agreeing(self.rules.scheme, patterns, self.compile, free, offsets, annotations)
        return replace(observed, allowed=self.constrained(tokens, observed.allowed))


def automaton_of(structure: Structure, patterns: Sequence[LabelPattern] | None = None) -> Automaton:
    """Compile the states and arcs of a model.

    patterns (Optional[Sequence[LabelPattern]]): None for the model's own patterns.
    """
    scheme, index = structure.scheme, structure.index
    return compile_automaton(
        index.patterns if patterns is None else patterns,
        scheme.limits,
        forbidden=scheme.forbidden,
        carried=index.carried,
    )


def allowed_in(
    structure: Structure, rules: TrainingRules | None, tokens: TokenBatch
) -> NDArray[np.uint8]:
    """Return the bits of every token and label that training sums over, uint8 [N, Y]."""
    bits = structure.allowed(tokens)
    return bits if rules is None else rules.constrained(tokens, bits)


def observed_in(
    structure: Structure,
    rules: TrainingRules | None,
    allowed: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    annotations: Sequence[Annotation],
) -> Observed:
    """Return the segmentations that agree with the annotation of D texts.

    allowed (uint8 [N, Y]): bits that training sums over. offsets (int64 [D + 1]): first token of each text.
    """
    compiled = rules.compile if rules else partial(automaton_of, structure)
    model = structure.scheme, structure.patterns, compiled
    return agreeing(*model, allowed, offsets, annotations)


def check_constraints(
    structure: Structure, texts: Sequence[str], annotations: Sequence[Annotation], key: str
) -> None:
    """Check that the constraints of each text are compatible with its annotation.

    texts (Sequence[str]): the beginning of each. key (str): key of the constraints in `doc.spans`.
    RAISES (ValueError): H243 for the first text for which no segmentation of the model agrees with both.
    """
    for bad in np.flatnonzero(~_possible_in(structure, annotations)).tolist():
        constraints = annotations[bad].constraints
        single = [replace(annotations[bad], constraints=(each,)) for each in constraints]
        wrong = np.flatnonzero(~_possible_in(structure, single)).tolist() or range(len(constraints))
        which = ", ".join(
            f"{kind} {label} on tokens {start} to {end}"
            for start, end, label, kind in (constraints[i] for i in wrong)
        )
        raise ValueError(ConstraintErrors.H243.format(text=texts[bad], which=which, key=key))


def _possible_in(structure: Structure, annotations: Sequence[Annotation]) -> NDArray[np.bool_]:
    """Does any segmentation of the model agree with everything that is known of each text?"""
    automaton, possible = automaton_of(structure), [np.zeros(0, dtype=bool)]
    lengths = [len(annotation.unknown) for annotation in annotations]
    for first, last in stretches(lengths, BATCH_TOKENS):
        offsets = offsets_of(lengths[first:last])
        free = structure.scheme.allowed(offsets)
        observed = observed_in(structure, None, free, offsets, annotations[first:last])
        possible.append(_possible(observed, offsets, automaton))
    return np.concatenate(possible)


def _possible(
    observed: Observed, offsets: NDArray[np.int64], automaton: Automaton
) -> NDArray[np.bool_]:
    """Does any segmentation of each text of a batch agree with the observation? bool [D]"""
    nothing = Potentials.zero(offsets, observed.allowed, len(automaton.patterns))
    return np.isfinite(observed.log_partition(nothing, automaton))


def satisfiable(
    structure: Structure, rules: TrainingRules | None, corpus: Corpus, documents: Sequence[Document]
) -> list[Document]:
    """Return the documents of a corpus whose annotation can satisfy the rules, in order."""
    if rules is None:
        return list(documents)
    chosen = []
    for batch, tokens in corpus.batches(documents):
        annotations = [document.annotation for document in batch]
        fits = rules.fits(tokens, structure.allowed(tokens), annotations)
        chosen += [document for document, fit in zip(batch, fits.tolist()) if fit]
    return chosen
