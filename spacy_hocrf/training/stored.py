"""What training asks for now and then, on disk instead of in memory."""

import pickle
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, Any
from weakref import finalize

__all__ = ["Store", "store_of"]

SIZE = 8
"""Bytes that say how long a value is."""


class Store:
    """Values in a file without a name, which is gone as soon as nobody has it, however this process ends.

    folder (Optional[str]): where it is made, with the first value; None for the system's folder of
        temporary files.
    """

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self._lock = Lock()
        self._end = 0

    def put(self, value: Any) -> int:
        """Write a value. RETURNS (int): where it is.

        RAISES (OSError): as the system does, if there is no place for it.
        """
        data = pickle.dumps(value, protocol=5)
        with self._lock:
            if self._file is None:
                self._file = TemporaryFile(dir=self._folder)
                finalize(self, self._file.close)
            place = self._end
            self._file.seek(place)
            self._file.write(len(data).to_bytes(SIZE, "little") + data)
            self._end = place + SIZE + len(data)
        return place

    def get(self, place: int) -> Any:
        """A copy of the value that was put there."""
        with self._lock:
            assert self._file is not None
            self._file.seek(place)
            data = self._file.read(int.from_bytes(self._file.read(SIZE), "little"))
        return pickle.loads(data)


def store_of(trainer: Any) -> Store | None:
    """Where a trainer's documents are kept: on disk, where its workers have files anyway; None for memory."""
    workers: Any = getattr(trainer, "workers", None)
    return Store(workers.folder) if hasattr(workers, "folder") else None
