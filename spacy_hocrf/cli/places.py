"""Check before the work begins whether output files can be written."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile

from spacy_hocrf.errors import Errors

__all__ = ["check_beside", "check_file", "check_folder"]


def check_file(path: Path, setting: str) -> None:
    """Check that a file can be created or overwritten. The check leaves no trace.

    path (Path): its parent folders may be missing. setting (str): the option it is from, for the message.
    RAISES (ValueError): H401 if it cannot be written.
    """
    with _reported(path, setting):
        if path.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        if path.is_file():
            path.open("ab").close()
        elif not path.exists():
            _try_below(path)


def check_beside(path: Path, setting: str) -> None:
    """Check that files can be written next to a path, which may exist.

    RAISES (ValueError): H401 if they cannot.
    """
    with _reported(path, setting):
        _try_below(path)


def check_folder(path: Path, setting: str) -> None:
    """Check that files can be written to a folder, which may be missing.

    RAISES (ValueError): H401 if they cannot.
    """
    with _reported(path, setting):
        _try_below(path / "file")


def _try_below(path: Path) -> None:
    """Write an unnamed file to the nearest existing folder above a path.

    RAISES (OSError): if it is not a folder, is not writable, or a name in the path is too long.
    """
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.is_dir():
        raise NotADirectoryError(0, f"{folder} is no folder")
    for name in path.absolute().relative_to(folder).parts:
        with suppress(FileNotFoundError):
            (folder / name).lstat()  # an error for a name that is too long
    TemporaryFile(dir=folder).close()


@contextmanager
def _reported(path: Path, setting: str) -> Iterator[None]:
    """Turn an OSError into H401, with the path and the option that names it."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        text = Errors.H401.format(path=path, reason=reason, setting=setting)
        raise ValueError(text) from None
