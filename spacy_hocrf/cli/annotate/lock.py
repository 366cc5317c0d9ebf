"""A lock that the system takes back when its process ends, however it ends.

No file says who has it, so none can be left that says so wrongly: what a killed process leaves is an empty
file that nobody has locked.
"""

import errno
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.warnings import Warnings

__all__ = ["locked"]

TAKEN = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}
"""What the system says of a lock that another process has."""


@contextmanager
def locked(path: Path, what: Path) -> Iterator[None]:
    """Have a lock while the body runs; its file is gone afterwards.

    path (Path): of the lock's file. what (Path): that is locked, for the message.
    RAISES (ValueError): H400 if another process has the lock.
    """
    with _taken(path, what):
        try:
            yield
        finally:
            # nobody can take it between the two: a file that has lost its name is not locked, see _taken
            with suppress(OSError):  # Windows deletes no open file, and leaves it empty
                path.unlink()


def _taken(path: Path, what: Path) -> IO[bytes]:
    """The locked file. RAISES (ValueError): H400."""
    while True:
        file = path.open("ab")
        try:
            _lock(file)
            if os.fstat(file.fileno()).st_ino == path.stat().st_ino:
                return file
        except FileNotFoundError:  # who had it has deleted it since it was opened
            pass
        except OSError as error:
            if error.errno in TAKEN:
                file.close()
                raise ValueError(CommandErrors.H400.format(path=what)) from None
            warnings.warn(Warnings.W048.format(path=what, reason=error), stacklevel=4)
            return file
        file.close()


if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        """RAISES (OSError): if another process has it, or the file system has no locks."""
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        """RAISES (OSError): if another process has it, or the file system has no locks."""
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
