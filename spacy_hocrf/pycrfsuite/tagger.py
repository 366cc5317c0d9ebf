"""Tagging with a model file of CRFsuite, or of this package."""

import math
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from os import PathLike, fsdecode
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from spacy_hocrf.pycrfsuite.items import ItemSequence, attributes_in
from spacy_hocrf.sequences.chain import Chain
from spacy_hocrf.sequences.crfsuite_file import Header, header_of, read_crfsuite
from spacy_hocrf.sequences.dataset import label_text
from spacy_hocrf.sequences.errors import SequenceErrors
from spacy_hocrf.sequences.model import SequenceModel
from spacy_hocrf.sequences.saving import is_ours, model_from_bytes

__all__ = ["ParsedDump", "Tagger"]


@dataclass(frozen=True)
class ParsedDump:
    """Labels, attributes and weights of a model.

    header (dict[str, str]): header of its file.
    labels, attributes (dict[str, str]): number of each.
    transitions (dict[tuple, float]): weight of each pattern of two or more labels.
    state_features (dict[tuple, float]): weight of each attribute with a label.
    """

    header: dict[str, str]
    labels: dict[str, str]
    attributes: dict[str, str]
    transitions: dict[tuple[str, ...], float]
    state_features: dict[tuple[str, ...], float]


class Tagger:
    """Predicts labels and probabilities of sequences, with a model that was opened.

    RAISES, all methods but `open`, `open_inmemory` and `close` (ValueError): H275 without a model.
    """

    def __init__(self) -> None:
        self._model: SequenceModel | None = None
        self._header: Header | None = None
        self._chain: Chain | None = None  # has read the current sequence

    def open(self, name: "str | bytes | PathLike[str]") -> "closing[Tagger]":
        """Read a model file.

        RETURNS (closing): for a `with` block that closes it.
        RAISES (OSError, ValueError): if the file cannot be read; H274 if it is not a model.
        """
        path = fsdecode(name)
        return self._open(Path(path).read_bytes(), path)

    def open_inmemory(self, value: bytes) -> "closing[Tagger]":
        """Read the bytes of a model file. RAISES (ValueError): H274 if they are not a model."""
        return self._open(bytes(value), "bytes")

    def close(self) -> None:
        """Close the model."""
        self._model, self._header, self._chain = None, None, None

    def labels(self) -> list[str]:
        """Return all labels, in the order of their numbers."""
        return list(self._opened().labels)

    def set(self, xseq: ItemSequence | Iterable[Any]) -> None:
        """Set the current sequence. RAISES (ValueError): H270, H271 or H420."""
        self._chain = self._read(xseq)

    def tag(self, xseq: ItemSequence | Iterable[Any] | None = None) -> list[str]:
        """Return the most probable labels of a sequence, by default the current one."""
        chain = self._asked() if xseq is None else self._read(xseq)
        labels = self._opened().best(chain)
        self._chain = chain
        return labels

    def probability(self, yseq: Sequence[str]) -> float:
        """Return P(labels | sequence) for the current sequence.

        RAISES (ValueError): H272 for more or fewer labels than items.
        RAISES (RuntimeError): H273 for an unknown label.
        """
        chain, labels = self._asked(), list(yseq)
        if len(labels) != len(chain):
            raise ValueError(SequenceErrors.H272.format(items=len(chain), labels=len(labels)))
        numbers = np.array(self._numbers(labels), dtype=np.int32)
        return math.exp(chain.log_probability(numbers))

    def marginal(self, y: str, pos: int) -> float:
        """Return P(label of the item at `pos` is y | sequence) for the current sequence.

        RAISES (ValueError): H276 for a position out of range.
        RAISES (RuntimeError): H273 for an unknown label.
        """
        chain = self._asked()
        if not 0 <= pos < len(chain):
            raise ValueError(SequenceErrors.H276.format(found=pos, expected=len(chain)))
        return chain.marginal(pos, *self._numbers([y]))

    def info(self) -> ParsedDump:
        """Return the contents of the model. RAISES (RuntimeError): H275 without a model."""
        model = self._opened(RuntimeError)
        names = list(model.attributes)
        return ParsedDump(
            header=_header_in_words(self._header, model),
            labels={label: str(i) for i, label in enumerate(model.labels)},
            attributes={name: str(i) for i, name in enumerate(names)},
            transitions=model.transitions(),
            state_features=model.state_features(),
        )

    def dump(self, filename: "str | PathLike[str] | None" = None) -> None:
        """Write the contents of the model as text.

        filename (Optional[Union[str, Path]]): UTF-8; by default it is printed.
        RAISES (RuntimeError): H275 without a model.
        """
        info = self.info()
        if filename is None:
            _dump(info, sys.stdout)
            return
        with open(filename, "w", encoding="utf8", newline="\n") as file:
            _dump(info, file)

    def _open(self, data: bytes, path: str) -> "closing[Tagger]":
        if is_ours(data):
            self._model, self._header = model_from_bytes(data, path), None
        else:
            self._model, self._header = read_crfsuite(data, path), header_of(data)
        self._chain = None
        return closing(self)

    def _read(self, xseq: ItemSequence | Iterable[Any]) -> Chain:
        """Return a chain that has read a sequence; no other thread has it until `_chain` does."""
        items = attributes_in(xseq)
        last, self._chain = self._chain, None
        return self._opened().chain(items, last)

    def _asked(self) -> Chain:
        if self._chain is None:
            self._chain = self._opened().chain([])
        return self._chain

    def _numbers(self, labels: Sequence[str]) -> list[int]:
        """Return labels' numbers. RAISES (RuntimeError): H273 for an unknown one, as python-crfsuite does."""
        model = self._opened()
        known = model.number_of
        try:
            return [known[y if y in known else label_text(y)] for y in labels]
        except KeyError as error:
            found = repr(error.args[0])
            text = SequenceErrors.H273.format(found=found, known=", ".join(model.labels))
            raise RuntimeError(text) from error

    def _opened(self, error: type[Exception] = ValueError) -> SequenceModel:
        if self._model is None:
            raise error(SequenceErrors.H275)
        return self._model


def _header_in_words(header: Header | None, model: SequenceModel) -> dict[str, str]:
    """Fields of the header as strings; for a model of this package the numbers of labels and attributes."""
    if header is None:
        return {"num_labels": str(len(model.labels)), "num_attrs": str(len(model.attributes))}
    return {name: _in_words(name, value) for name, value in header._asdict().items()}


def _in_words(name: str, value: bytes | int) -> str:
    if isinstance(value, bytes):
        return value.decode("ascii")
    return f"0x{value:X}" if name.startswith("off_") else str(value)


def _dump(info: ParsedDump, file: TextIO) -> None:
    def section(name: str, lines: Iterable[str]) -> None:
        file.write(f"{name} = {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n\n")

    section("FILEHEADER", (f"{name}: {value}" for name, value in info.header.items()))
    section("LABELS", (f"{number:>5}: {label}" for label, number in info.labels.items()))
    section("ATTRIBUTES", (f"{number:>5}: {name}" for name, number in info.attributes.items()))
    section(
        "TRANSITIONS",
        (f"(1) {' --> '.join(z)}: {weight:.6f}" for z, weight in info.transitions.items()),
    )
    section(
        "STATE_FEATURES",
        (f"(0) {' --> '.join(z)}: {weight:.6f}" for z, weight in info.state_features.items()),
    )
