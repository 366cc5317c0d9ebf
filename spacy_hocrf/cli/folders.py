"""Private temporary folders, which are deleted even if their process is killed.

A signal to a whole process group may end Python before it can clean up, and SIGKILL always does. So a shell
in a process group of its own waits until this process closes a pipe, or dies, and then deletes the folder.
The shell gets the folder's name before the folder is made.
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
    """A temporary folder, deleted by `close` or at the end of a `with` block.

    prefix (str): beginning of its name.
    place (Optional[Union[str, Path]]): parent folder; None for the system's temporary folder.
    RAISES (OSError): if it cannot be made.
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
        """End the shell."""
        if self._guard is not None:
            self._guard.communicate()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *error: object) -> None:
        self.close()
