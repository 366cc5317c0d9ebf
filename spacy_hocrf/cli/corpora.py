"""Files of Docs that a command is given, or what to do with a file that has none."""

import shlex
from pathlib import Path

from spacy.training.corpus import walk_corpus

from spacy_hocrf.cli.convert.formats import FORMATS, recognized
from spacy_hocrf.cli.convert.records import Settings
from spacy_hocrf.cli.errors import CommandErrors

__all__ = ["doc_files"]

SUFFIX = ".spacy"


def doc_files(path: str | Path) -> list[Path]:
    """A file of spaCy's (.spacy), or all that are in a folder, sorted.

    RAISES (ValueError): H381 for a file of another kind, or a folder without any but with others.
    """
    path = Path(path)
    if path.is_file() and path.suffix != SUFFIX:
        name, kind = recognized(path, Settings())
        _refuse(path, kind if name is None else f"a file of {FORMATS[name].what}")
    if path.is_dir() and not any(path.rglob(f"*{SUFFIX}")):
        others = sum(each.is_file() for each in path.rglob("*"))
        if others:
            _refuse(path, f"a folder with {others} other files")
        return []
    return [Path(each) for each in walk_corpus(path, SUFFIX)]


def _refuse(path: Path, found: str) -> None:
    output = path.with_suffix(SUFFIX) if path.is_file() else path.with_name(f"{path.name}{SUFFIX}")
    arguments = shlex.join((str(path), str(output)))
    raise ValueError(CommandErrors.H381.format(path=path, found=found, arguments=arguments))
