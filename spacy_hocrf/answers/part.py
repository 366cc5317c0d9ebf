"""Docs of a batch that are decoded with the same automaton."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc

from spacy_hocrf.annotation.annotation import NamedSpans
from spacy_hocrf.annotation.text_constraints import TextConstraints
from spacy_hocrf.annotation.whitespace import scores_of_shown
from spacy_hocrf.answers.decoders import BUILT_IN, Decoder, checked_numbers
from spacy_hocrf.arrays import ranges
from spacy_hocrf.engine.automaton import Automaton
from spacy_hocrf.engine.selection import select_sequences
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.rules.compiled import Numbers
from spacy_hocrf.rules.followed import FollowedRules
from spacy_hocrf.types import Potentials, Segments

__all__ = ["Part"]


@dataclass(frozen=True)
class Part:
    """D Docs of a batch, and what they are decoded with.

    potentials (Potentials): log potentials of the D Docs.
    under (FollowedRules): the rules that they are decoded under.
    blank (Optional[bool [N]]): whitespace that spans are shown without, if there is any.
    docs (int64 [D]): numbers of the Docs in the batch, ascending.
    inside (Optional[TextConstraints]): tokens that must be in a span, if there are any.
    """

    batch: TokenBatch
    potentials: Potentials
    under: FollowedRules
    blank: NDArray[np.bool_] | None
    docs: NDArray[np.int64]
    inside: TextConstraints | None = None

    @property
    def automaton(self) -> Automaton:
        """Product of the model's automaton and the rules that are followed."""
        return self.under.automaton

    @property
    def scheme(self) -> LabelScheme:
        """Labels and segments of the model."""
        return self.under.rules.scheme

    @property
    def inputs(self) -> tuple[Potentials, Automaton, LabelScheme]:
        """What decoders take first: log potentials, automaton and labels."""
        return self.potentials, self.under.automaton, self.under.rules.scheme

    def scores(self, decoder: Decoder, spans: Segments) -> NDArray[np.float64]:
        """Return the score of each span as it is shown, float64 [n].

        spans (Segments): n spans of the D Docs; their labels are indices into the scheme's `labels`.
        RAISES (ValueError): H590 for scores that are not finite numbers of at least 0, one for each span.
        """
        score = decoder.scores if type(decoder) in BUILT_IN else partial(_checked_numbers, decoder)
        score = partial(score, *self.inputs)
        if self.blank is None:
            return score(spans)
        return scores_of_shown(score, spans, self.blank, self.potentials.offsets)

    def doc(self, number: int) -> Doc:
        """Return the Doc with this index in the part."""
        return self.batch.docs[int(self.docs[number])]

    def only(self, numbers: NDArray[np.int64]) -> "Part":
        """Return a part with some of the Docs.

        numbers (int64 [n]): their indices in the part, ascending.
        """
        offsets, blank = self.potentials.offsets, self.blank
        if len(numbers) == len(self.docs):
            return self
        if blank is not None:
            blank = blank[ranges(offsets[numbers], np.diff(offsets)[numbers])]
        return replace(
            self,
            potentials=select_sequences(self.potentials, numbers),
            blank=blank,
            docs=self.docs[numbers],
            inside=None if self.inside is None else self.inside.of_texts(numbers),
        )

    def following(self, rules: Numbers) -> "Part":
        """Return a part with the same Docs that follows these rules instead."""
        return replace(self, under=replace(self.under, numbers=rules))

    def stricter(self, spans: NamedSpans) -> "Part | None":
        """Return a part with the same Docs that also follows the hard rules broken by these spans: the best
        reading with an improbable span may break rules that the part is decoded without. None if none is
        broken.
        """
        missing = self.under.missing(spans)
        return replace(self, under=self.under.with_others(missing)) if missing else None


def _checked_numbers(decoder: Decoder, *inputs: Any) -> NDArray[np.float64]:
    """Return the scores of some spans, the last of the inputs."""
    return checked_numbers(decoder, "scores", decoder.scores(*inputs), len(inputs[-1].start))
