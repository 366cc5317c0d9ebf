"""Files that are written as a whole: an interruption or a full disk leaves the file of before, or none."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from spacy.tokens import Doc, DocBin
from srsly import json_dumps

__all__ = ["UNFINISHED", "write_docs", "write_json", "write_whole"]

UNFINISHED = ".unfinished"


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file atomically, in a folder that is made if needed. What is no file, such as a pipe or
    /dev/stdout, is written to as it is. Text is written as UTF-8.
    """
    content = content.encode() if isinstance(content, str) else content
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    path = path.resolve()  # a link stays
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}{UNFINISHED}")
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_docs(path: Path, docs: Iterable[Doc]) -> None:
    """Write Docs with their user data to a .spacy file, as `write_whole` does."""
    write_whole(path, DocBin(docs=docs, store_user_data=True).to_bytes())


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON, as `write_whole` does."""
    write_whole(path, json_dumps(value, indent=2))
