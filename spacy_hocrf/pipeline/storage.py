"""How a component is saved and loaded: as bytes, as files of a folder, or pickled.

What is saved is in persistence.py, how bytes and files hold it in archive.py, which is imported when
there is something to save or to load.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from spacy.pipeline import TrainablePipe

from spacy_hocrf.model.architectures import model_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from spacy.vocab import Vocab

    from spacy_hocrf.model.structure import Settings, Structure
    from spacy_hocrf.pipeline.archive import Payload

__all__ = ["StoredPipe"]

Pipe = TypeVar("Pipe", bound="StoredPipe")


class StoredPipe(TrainablePipe):
    """A component that says what it has learnt, `_payload`, and that can become that, `_become`."""

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Settings, labels, features and weights; neither the corpus nor the optimiser's state."""
        from spacy_hocrf.pipeline.archive import write_bytes

        return write_bytes(self._payload())

    def from_bytes(self: Pipe, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> Pipe:
        """Replace everything learnt. RAISES (ValueError): H039, H052, H053 or H054; nothing has
        changed then.
        """
        from spacy_hocrf.pipeline.archive import read_bytes

        self._become(read_bytes(bytes_data))
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """As `to_bytes`, into a folder; an interruption leaves the older model there."""
        from spacy_hocrf.pipeline.archive import write_files

        write_files(self._payload(), Path(path))

    def from_disk(self: Pipe, path: str | Path, *, exclude: Iterable[str] = ()) -> Pipe:
        """As `from_bytes`."""
        from spacy_hocrf.pipeline.archive import read_files

        self._become(read_files(Path(path)))
        return self

    @property
    def structure(self) -> Structure:
        """Of the model."""
        raise NotImplementedError

    def _settings(self) -> dict[str, Any]:
        """The arguments that make another component of this kind, besides vocab, model and name."""
        raise NotImplementedError

    def _payload(self) -> Payload:
        """All that there is to save."""
        raise NotImplementedError

    def _become(self, payload: Payload) -> None:
        """Replace everything learnt, or nothing if the model is refused."""
        raise NotImplementedError

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        settings = self.vocab, self.structure.settings, self.name, self._settings()
        return _unpickle, (type(self), *settings, self.to_bytes())


def _unpickle(
    cls: type[Pipe], vocab: Vocab, model: Settings, name: str, settings: Any, state: bytes
) -> Pipe:
    return cls(vocab, model_of(model), name, **settings).from_bytes(state)
