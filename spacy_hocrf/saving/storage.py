"""How a component is saved and loaded: as bytes, as files of a folder, or pickled.

What is saved is in persistence.py, how bytes and files hold it in archive.py, which is imported when
there is something to save or to load.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from spacy_hocrf.saving.archive import Payload

__all__ = ["StoredPipe"]

Pipe = TypeVar("Pipe", bound="StoredPipe")


class StoredPipe:
    """A component that says what it has learnt, `_payload`, and that can become that, `_become`."""

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Settings and what is learnt; neither the corpus nor the state of training."""
        from spacy_hocrf.saving.archive import write_bytes

        return write_bytes(self._payload())

    def from_bytes(self: Pipe, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> Pipe:
        """Replace everything learnt.

        RAISES (ValueError): H052, H053 or H134 for damaged data, H039, H054, H301, H302 or H307 for what a
            component with other settings has saved; nothing has changed then.
        """
        from spacy_hocrf.saving.archive import read_bytes

        self._become(read_bytes(bytes_data))
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write settings and what is learnt into a folder; an interruption leaves the older model there."""
        from spacy_hocrf.saving.archive import write_files

        write_files(self._payload(), Path(path))

    def from_disk(self: Pipe, path: str | Path, *, exclude: Iterable[str] = ()) -> Pipe:
        """Replace everything learnt by what a folder has.

        RAISES (ValueError): as `from_bytes`.
        """
        from spacy_hocrf.saving.archive import read_files

        self._become(read_files(Path(path)))
        return self

    def _payload(self) -> Payload:
        """All that there is to save."""
        raise NotImplementedError

    def _become(self, payload: Payload) -> None:
        """Replace everything learnt, or nothing if the model is refused."""
        raise NotImplementedError

    def _untrained(self) -> Callable[[], StoredPipe]:
        """What makes another component with these settings, and can be pickled."""
        raise NotImplementedError

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _unpickle, (self._untrained(), self.to_bytes())


def _unpickle(untrained: Callable[[], StoredPipe], state: bytes) -> StoredPipe:
    return untrained().from_bytes(state)
