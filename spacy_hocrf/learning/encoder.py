"""The encoder of a neural model: shape inference when training begins, saving its parameters, and checking
that its output stays constant.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
from spacy.training import Example
from thinc.api import Model

from spacy_hocrf.features.saved import need
from spacy_hocrf.model.errors import EncoderErrors
from spacy_hocrf.model.heads import listens
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.saving.persistence import Section

__all__ = ["EncoderKeeper", "begun", "check_constant"]

N_TEXTS = 100
"""Number of texts from which an encoder infers its shapes."""

Encoder = Model[Any, Any]


@contextmanager
def begun(encoder: Encoder | None, read: Callable[[], Iterable[Example]]) -> Iterator[None]:
    """Context manager: initialise an encoder's shapes and parameters, and restore it if anything fails.

    read (Callable[[], Iterable[Example]]): reads the training corpus.
    """
    if encoder is None:
        yield
        return
    before = [
        (node, name, node.get_param(name).copy() if node.has_param(name) else None)
        for node in encoder.walk()
        for name in node.param_names
    ]
    try:
        docs = [example.predicted for example in islice(read(), N_TEXTS) if len(example.predicted)]
        if docs:
            encoder.initialize(X=docs)
        yield
    except BaseException:
        for node, name, value in before:
            node.set_param(name, value)
        raise


def check_constant(encoder: Encoder, examples: Sequence[Example], name: str) -> None:
    """Check that an encoder that listens to another component gets constant input: a trainer that iterates
    over the whole corpus needs the same rows each time.

    RAISES (ValueError): H179 if another component changes them, or has written none.
    """
    if not listens(encoder):
        return
    if any(getattr(node, "_batch_id", None) is not None for node in encoder.walk()):
        raise ValueError(EncoderErrors.H179.format(name=name, found="is being trained"))
    docs = [example.predicted for example in examples if len(example.predicted)]
    if docs and not encoder.predict(docs)[:, :-1].any():
        raise ValueError(
            EncoderErrors.H179.format(name=name, found="has written nothing to the texts")
        )


class EncoderKeeper:
    """Saves the encoder's parameters in thinc's format.

    encoder (Optional[Model]): encoder of the component with this name.
    """

    setting = "[components.*.model.tok2vec]"

    def __init__(self, encoder: Encoder | None, name: str) -> None:
        self._encoder = encoder
        self._name = name

    def saved(self) -> Section | None:
        """Return the section to save; None without an encoder."""
        if self._encoder is None:
            return None
        return Section({}, {"bytes": np.frombuffer(self._encoder.to_bytes(), dtype=np.uint8)})

    def checked(self, section: Section | None, scheme: LabelScheme) -> bytes | None:
        """Return the saved bytes, after test-loading them into a copy.

        RAISES (ValueError): H039 for damaged data, H178 if the saved layers differ.
        """
        if section is None and self._encoder is None:
            return None
        if section is None or self._encoder is None:
            reason = "one of the two has none"
            raise ValueError(EncoderErrors.H178.format(name=self._name, reason=reason))
        need(list(section.arrays) == ["bytes"], "encoder.bytes")
        saved = section.arrays["bytes"]
        need(saved.dtype == np.uint8, "encoder.bytes")
        try:
            self._encoder.copy().from_bytes(saved.tobytes())
        except Exception as error:
            reason = str(error)[:200]
            raise ValueError(EncoderErrors.H178.format(name=self._name, reason=reason)) from error
        return saved.tobytes()

    def adopt(self, value: Any) -> None:
        """Load the saved parameters into the encoder."""
        if value is not None and self._encoder is not None:
            self._encoder.from_bytes(value)
