"""Which texts to annotate next: those of which a model has most to learn.

What a text may teach is how unsure the model is of it: the entropies of its tokens' labels, all together. But
texts that look alike teach the same. So they are chosen one after another, and a token counts the less, the
more chosen texts have its word:

    gain(text) = Σ_t H(label of t) · REPEATED ^ (chosen texts with the word of t).

Gains only fall, so a text whose gain is still the largest when it is computed anew is the next one (lazy
greedy choice: Minoux, Optimization Techniques, 1978).
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc

from spacy_hocrf.cli.components import component_of, ready_docs
from spacy_hocrf.pipeline.identity import id_of
from spacy_hocrf.pipeline.reading import ScoredSpan
from spacy_hocrf.pipeline.spans import words_of

__all__ = ["NextText", "in_order", "next_texts"]

REPEATED = 0.8
"""What a word counts that one of the chosen texts has."""


class NextText(NamedTuple):
    """A text to annotate."""

    number: int  # from 0
    gain: float  # in nats, when it was chosen
    words: tuple[str, ...]  # tokens, each with the white space behind it
    found: tuple[ScoredSpan, ...]  # what the pipeline shows
    id: str | None = None  # that the file gives it

    @property
    def name(self) -> str:
        """Its id, or its number if it has none."""
        return str(self.number) if self.id is None else self.id


def next_texts(nlp: Language, docs: Sequence[Doc], component: str | None = None) -> list[NextText]:
    """All texts, in the order in which to annotate them; of each the pipeline gets the tokens only.

    component (Optional[str]): name of the component; None for the only one of ours.
    RAISES (ValueError): H204 for a component that there is not.
    """
    name, pipe = component_of(nlp, component)
    ready = ready_docs(nlp, docs, name)
    words = [tuple(words_of(doc)) for doc in ready]
    entropies, found = [], []
    for reading, prediction in zip(pipe.readings(ready), pipe.predict(ready), strict=True):
        entropies.append(reading.token_entropy())
        found.append(tuple(ScoredSpan(*s, reading.probability(*s)) for s in prediction.spans))
    keys = [[word.strip().lower() for word in text] for text in words]
    return [
        NextText(i, gain, words[i], found[i], id_of(docs[i]))
        for i, gain in in_order(entropies, keys)
    ]


def in_order(
    entropies: Sequence[NDArray[np.float64]], words: Sequence[Sequence[str]]
) -> Iterable[tuple[int, float]]:
    """Numbers of texts, each the one with the largest gain after those before it, and its gain.

    entropies (Sequence[float64 [T]]): of the tokens of each text. words (Sequence[Sequence[str]]): of each.
    """
    chosen = Counter[str]()

    def gain(text: int) -> float:
        shares = REPEATED ** np.array([chosen[word] for word in words[text]], dtype=np.float64)
        return float(entropies[text] @ shares)

    heap = [(-gain(text), text) for text in range(len(words))]
    heapq.heapify(heap)
    while heap:
        _, text = heapq.heappop(heap)
        now = (-gain(text), text)
        if heap and heap[0] < now:
            heapq.heappush(heap, now)
        else:
            chosen.update({*words[text]})
            yield text, -now[0]
