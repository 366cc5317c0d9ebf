"""Can a file be written where it should be? Asked before the work, not when all is done."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile

from spacy_hocrf.errors import Errors

__all__ = ["check_beside", "check_file", "check_folder"]


def check_file(path: Path, setting: str) -> None:
    """See whether a file can be written, or written anew. Nothing is left of that, and what is there stays.

    path (Path): folders above it may still be missing. setting (str): where it comes from, for the message.
    RAISES (ValueError): H401 if it cannot.
    """
    with _told(path, setting):
        if path.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        if path.is_file():
            path.open("ab").close()
        elif not path.exists():
            _try_below(path)


def check_beside(path: Path, setting: str) -> None:
    """See whether files can be written beside a path, whatever is there.

    RAISES (ValueError): H401 if they cannot.
    """
    with _told(path, setting):
        _try_below(path)


def check_folder(path: Path, setting: str) -> None:
    """See whether files can be written to a folder, which may still be missing.

    RAISES (ValueError): H401 if they cannot.
    """
    with _told(path, setting):
        _try_below(path / "file")


def _try_below(path: Path) -> None:
    """Write a file without a name to the folder of a path, or the nearest above it that is there.

    RAISES (OSError): if that is no folder, or nobody may write to it.
    """
    there = next(each for each in path.absolute().parents if each.exists())
    if not there.is_dir():
        raise NotADirectoryError(0, f"{there} is no folder")
    for name in path.absolute().relative_to(there).parts:
        with suppress(FileNotFoundError):
            (there / name).lstat()  # an error for a name that is too long
    TemporaryFile(dir=there).close()


@contextmanager
def _told(path: Path, setting: str) -> Iterator[None]:
    """Tell of what the system says as of a path that cannot be written, and where that comes from."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        text = Errors.H401.format(path=path, reason=reason, setting=setting)
        raise ValueError(text) from None
