"""An encoder as ONNX, with its tokenizer: from words to pieces, windows of pieces, and a row for every word.

Windows are read together if they have the same number of pieces, so nothing is padded, and most models then
compute every window independently, to the last bit. Not so a model that quantises its activations at run
time, with one scale for everything that it reads at once. Such a model is detected by reading a few windows
alone and together, and then reads one window at a time.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.errors import Errors

__all__ = ["Encoder", "EncoderFiles"]

PIECES = 2_048
"""Most pieces that are read together."""
OVERLAP = 4
"""Windows share 1 / OVERLAP of their pieces."""
TRIED = (3, 9, 30)
"""Numbers of pieces in the windows that are read alone and together."""
INPUTS = {"input_ids", "attention_mask", "token_type_ids"}
TYPES = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}

Integers = NDArray[np.int64]
Rows = NDArray[np.float32]
PieceWindow = tuple[int, int, int, int]
"""First piece and one past the last; and the same for the pieces whose rows are kept, up to the middle of the
overlap of two windows.
"""


@dataclass(frozen=True)
class EncoderFiles:
    """An ONNX model and its tokenizer."""

    model: bytes | Path
    tokenizer: bytes
    place: str  # where they are, for messages

    @classmethod
    def find(cls, folder: Path, file: str | None, name: str) -> "EncoderFiles":
        """Find the files in a folder.

        file (Optional[str]): the model's file, relative to the folder; None for the only one.
        name (str): name of the component.
        RAISES (ValueError): H491 without a tokenizer, H492 unless there is exactly one model.
        """
        path = folder / "tokenizer.json"
        if not path.is_file():
            found = "a folder without tokenizer.json" if folder.is_dir() else "no folder"
            raise ValueError(Errors.H491.format(folder=folder, found=found, name=name))
        models = sorted([*folder.glob("*.onnx"), *folder.glob("onnx/*.onnx")])
        chosen = models if file is None else [folder / file]
        if len(chosen) != 1 or not chosen[0].is_file():
            known = ", ".join(model.relative_to(folder).as_posix() for model in models) or "none"
            wanted = "one" if file is None else repr(file)
            raise ValueError(
                Errors.H492.format(folder=folder, known=known, wanted=wanted, name=name)
            )
        return cls(chosen[0], path.read_bytes(), str(chosen[0]))

    def read(self) -> bytes:
        """The bytes of the ONNX model."""
        return self.model if isinstance(self.model, bytes) else self.model.read_bytes()

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of model and tokenizer, in hexadecimal."""
        return sha256(sha256(self.read()).digest() + self.tokenizer).hexdigest()


class _Pieces(NamedTuple):
    """The n pieces of a text, between those that the tokenizer adds."""

    ids: Integers  # [n + added] including added pieces
    types: Integers  # [n + added]
    before: int  # number of added pieces at the beginning
    words: Integers  # [n] number of each piece's word, ascending
    pooled: NDArray[np.bool_]  # [n] does the row of the piece count for its word?

    def read(self, column: Integers, window: PieceWindow) -> Integers:
        """Return the pieces of a window, between those that are added."""
        before, end = self.before, self.before + len(self.words)
        inner = column[before + window[0] : before + window[1]]
        return np.concatenate([column[:before], inner, column[end:]])


class Encoder:
    """An encoder that runs on the CPU, with reproducible results.

    files (EncoderFiles): the model and its tokenizer.
    pool (str): "mean" or "first" of the rows of a word's pieces.
    window (int): most pieces that are read at once.
    threads (int): number of threads of the model.
    name (str): name of the component, for errors.
    RAISES (ValueError): H490 without the packages that run it, H493 for files that cannot be read, H494 or
        H495 for a model with other inputs or outputs.

    width (int): size of a row.
    """

    def __init__(
        self, files: EncoderFiles, pool: str, window: int, threads: int, name: str
    ) -> None:
        self._pool, self._window, self._name, self._place = pool, window, name, files.place
        self._tokenizer = _tokenizer_of(files, name)
        self._session = _session_of(files, threads, name)
        self._types = self._checked_inputs()
        self._output, self.width = self._checked_output()

    def rows(self, texts: Sequence[Sequence[str]]) -> list[Rows]:
        """Return a row for every word of each text, float32 [T, width]; zeros for a word without pieces.

        RAISES (ValueError): H496 if the model fails.
        """
        pieces = [self._cut(words) for words in texts]
        rows_of = [np.zeros((len(words), self.width), dtype=np.float32) for words in texts]
        groups = defaultdict[int, list[tuple[int, PieceWindow]]](list)
        for i, text in enumerate(pieces):
            added = len(text.ids) - len(text.words)
            for window in _windows(len(text.words), max(self._window - added, 1)):
                groups[window[1] - window[0] + added].append((i, window))
        for length in sorted(groups):  # so that the rows of a word are summed in a fixed order
            group = groups[length]
            size = max(1, PIECES // length)
            if len(group) > 1 and (length == 1 or self._depends_on_company):
                size = 1
            for windows in (group[at : at + size] for at in range(0, len(group), size)):
                read = self._read(
                    np.stack([pieces[i].read(pieces[i].ids, window) for i, window in windows]),
                    np.stack([pieces[i].read(pieces[i].types, window) for i, window in windows]),
                )
                for (i, (first, _, begin, end)), window_rows in zip(windows, read):
                    text = pieces[i]
                    used = begin + np.flatnonzero(text.pooled[begin:end])
                    words, starts = np.unique(text.words[used], return_index=True)
                    if len(words):
                        window_rows = window_rows[text.before + used - first]
                        rows_of[i][words] += np.add.reduceat(window_rows, starts, axis=0)
        for text, rows in zip(pieces, rows_of):
            counts = np.bincount(text.words[text.pooled], minlength=len(rows))
            rows /= np.maximum(counts, 1).astype(np.float32)[:, None]
        return rows_of

    def _cut(self, words: Sequence[str]) -> _Pieces:
        cut = self._tokenizer.encode(list(words), is_pretokenized=True)
        ids, types = (np.array(x, dtype=np.int64) for x in (cut.ids, cut.type_ids))
        numbers = np.array([-1 if x is None else x for x in cut.word_ids], dtype=np.int64)
        inner = np.flatnonzero(numbers >= 0)
        before = int(inner[0]) if len(inner) else len(ids)
        numbers = numbers[inner]
        pooled = np.ones(len(numbers), dtype=np.bool_)
        if self._pool == "first":
            pooled[1:] = numbers[1:] != numbers[:-1]
        return _Pieces(ids, types, before, numbers, pooled)

    @cached_property
    def _depends_on_company(self) -> bool:
        """Does reading a window together with others of its length change its rows?"""
        draw = np.random.default_rng(0)
        for length in TRIED:
            ids = draw.integers(0, self._tokenizer.get_vocab_size(), (4, length))
            together = self._read(ids, np.zeros_like(ids))
            alone = [self._read(text, np.zeros_like(text)) for text in ids[:, None]]
            if not np.array_equal(np.concatenate(alone), together):
                return True
        return False

    def _read(self, ids: Integers, types: Integers) -> Rows:
        """Read pieces, int64 [n, pieces]. RETURNS: their rows, float32 [n, pieces, width]."""
        values = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": types}
        inputs = {name: values[name].astype(dtype) for name, dtype in self._types.items()}
        try:
            (rows,) = self._session.run([self._output], inputs)
        except Exception as error:  # there is no common base class
            what = {"place": self._place, "found": ids.shape[1], "name": self._name}
            raise ValueError(Errors.H496.format(**what, reason=_line(error))) from error
        numbers: Rows = rows.astype(np.float32, copy=False)
        return numbers

    def _checked_inputs(self) -> dict[str, type[np.integer[Any]]]:
        """Check the inputs, and return the type of each."""
        inputs = self._session.get_inputs()
        names = {node.name for node in inputs}
        right = all(node.type in TYPES and _free(node.shape, 2) for node in inputs)
        if not (right and "input_ids" in names and names <= INPUTS):
            found = "; ".join(map(_spelt, inputs))
            raise ValueError(Errors.H494.format(place=self._place, found=found, name=self._name))
        return {node.name: TYPES[node.type] for node in inputs}

    def _checked_output(self) -> tuple[str, int]:
        """Check the outputs, and return name and width of the one with a row for each piece."""
        outputs = self._session.get_outputs()
        fitting = {
            node.name: node.shape[2]
            for node in outputs
            if node.type.startswith("tensor(float")
            and _free(node.shape[:2], 2)
            and len(node.shape) == 3
            and isinstance(node.shape[2], int)
        }
        if not fitting:
            found = "; ".join(map(_spelt, outputs))
            raise ValueError(Errors.H495.format(place=self._place, found=found, name=self._name))
        name = "last_hidden_state" if "last_hidden_state" in fitting else next(iter(fitting))
        return name, fitting[name]


def _windows(size: int, most: int) -> Iterator[PieceWindow]:
    """Yield windows over the pieces of a text: one, or several of equal length."""
    if size == 0:
        return
    firsts = [*range(0, size - most, most - most // OVERLAP), max(0, size - most)]
    middles = [(second + first + most) // 2 for first, second in pairwise(firsts)]
    for first, begin, end in zip(firsts, [0, *middles], [*middles, size]):
        yield first, min(first + most, size), begin, end


def _tokenizer_of(files: EncoderFiles, name: str) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ValueError(Errors.H490.format(found="tokenizers", name=name)) from error
    try:
        tokenizer = Tokenizer.from_str(files.tokenizer.decode("utf8"))
    except Exception as error:  # tokenizers raises plain exceptions
        what = {"place": files.place, "found": "tokenizer", "reason": _line(error), "name": name}
        raise ValueError(Errors.H493.format(**what)) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if getattr(tokenizer.pre_tokenizer, "add_prefix_space", None) is False:
        tokenizer.pre_tokenizer.add_prefix_space = True  # treat every word as preceded by a space
    return tokenizer


def _session_of(files: EncoderFiles, threads: int, name: str) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise ValueError(Errors.H490.format(found="onnxruntime", name=name)) from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.use_deterministic_compute = True
    options.enable_mem_pattern = False  # it would cache every shape
    options.log_severity_level = 4  # errors are raised, so they need not be printed
    try:
        providers = ["CPUExecutionProvider"]
        return onnxruntime.InferenceSession(files.model, options, providers=providers)
    except Exception as error:  # there is no common base class
        what = {"place": files.place, "found": "model", "reason": _line(error), "name": name}
        raise ValueError(Errors.H493.format(**what)) from error


def _free(shape: Sequence[Any], rank: int) -> bool:
    """Are there `rank` dimensions, all of variable size?"""
    return len(shape) == rank and not any(isinstance(extent, int) for extent in shape)


def _spelt(node: Any) -> str:
    return f"{node.name} {node.type} {node.shape}"


def _line(error: Exception) -> str:
    """The first line of an error's message."""
    return str(error).strip().split("\n")[0]
