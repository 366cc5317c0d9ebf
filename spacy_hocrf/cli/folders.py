"""Folders for working files that nobody else may read, and that are gone when their process is.

A signal to a whole process group ends Python before it can tidy up, and SIGKILL always does. So a shell in a
group of its own waits until this process closes a pipe, or is no more, and deletes the folder then. It hears
of the folder before there is one.
"""

import os
import shutil
import subprocess
from pathlib import Path
from secrets import token_hex
from tempfile import gettempdir

__all__ = ["WorkingFolder"]

GUARD = 'IFS= read -r folder && { cat > /dev/null; rm -rf -- "$folder"; }'


class WorkingFolder:
    """A new folder, to be closed, or for the body of a `with`.

    prefix (str): its name begins so.
    place (Optional[Union[str, Path]]): where; None for the system's folder of temporary files.
    RAISES (OSError): if there is no place for it.
    """

    def __init__(self, prefix: str, place: str | Path | None = None) -> None:
        self.path = Path(place or gettempdir()).absolute() / f"{prefix}{token_hex(4)}"
        self._guard: subprocess.Popen[bytes] | None = None
        if os.name == "posix" and "\n" not in str(self.path):
            self._guard = subprocess.Popen(
                ["/bin/sh", "-c", GUARD],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            assert self._guard.stdin is not None
            self._guard.stdin.write(os.fsencode(self.path) + b"\n")
            self._guard.stdin.flush()
        try:
            self.path.mkdir(mode=0o700)
        except OSError:
            self._dismiss()
            raise

    def close(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._dismiss()

    def _dismiss(self) -> None:
        """The shell is needed no more."""
        if self._guard is not None:
            self._guard.communicate()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *error: object) -> None:
        self.close()
