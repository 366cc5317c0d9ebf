"""Saving and loading a component, as bytes, as files in a folder, or pickled.

What is saved is defined in persistence.py, the format in archive.py; both are imported only when something is
saved or loaded.
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
    """Base class of components: `_payload` returns what is saved, `_become` restores it."""

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Serialise settings and what is learnt; neither the corpus nor the state of training.

        exclude (Iterable[str]): spaCy passes it to every component; it is ignored.
        RETURNS (bytes): for `from_bytes`, with a checksum.
        """
        from spacy_hocrf.saving.archive import write_bytes

        return write_bytes(self._payload())

    def from_bytes(self: Pipe, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> Pipe:
        """Replace everything that the component has learnt by a model from `to_bytes`.

        bytes_data (bytes): result of `to_bytes`. exclude: ignored.
        RETURNS (Pipe): the component itself.
        RAISES (ValueError): H052, H053 or H134 for damaged data, H039, H054, H301, H302 or H307 for a model
            saved with other settings; nothing is changed then.
        """
        from spacy_hocrf.saving.archive import read_bytes

        self._become(read_bytes(bytes_data))
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Save settings and what is learnt to a folder; if interrupted, the older model stays there.

        path (Union[str, Path]): the folder, which is made if necessary. exclude: ignored.
        """
        from spacy_hocrf.saving.archive import write_files

        write_files(self._payload(), Path(path))

    def from_disk(self: Pipe, path: str | Path, *, exclude: Iterable[str] = ()) -> Pipe:
        """Replace everything that the component has learnt by a model from a folder.

        path (Union[str, Path]): a folder that `to_disk` has written. exclude: ignored.
        RETURNS (Pipe): the component itself.
        RAISES (ValueError): H052, H053 or H134 for damaged data, H039, H054, H301, H302 or H307 for a model
            saved with other settings; nothing is changed then.
        """
        from spacy_hocrf.saving.archive import read_files

        self._become(read_files(Path(path)))
        return self

    def _payload(self) -> Payload:
        """Return everything that is saved."""
        raise NotImplementedError

    def _become(self, payload: Payload) -> None:
        """Replace everything learnt, or nothing if the model is refused."""
        raise NotImplementedError

    def _untrained(self) -> Callable[[], StoredPipe]:
        """Return a picklable callable that makes another component with these settings."""
        raise NotImplementedError

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _unpickle, (self._untrained(), StoredPipe.to_bytes(self))


def _unpickle(untrained: Callable[[], StoredPipe], state: bytes) -> StoredPipe:
    return untrained().from_bytes(state)
