"""The component `hocrf_encoder`: sets `doc.tensor`, and is saved with its encoder or a reference to it."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import srsly
from spacy.tokens import Doc
from spacy.util import minibatch

from spacy_hocrf.arrays import stretches
from spacy_hocrf.encoder.onnx import Encoder, EncoderFiles
from spacy_hocrf.errors import Errors

__all__ = ["EncoderPipe"]

TOGETHER = 16_384
"""Most tokens that are read together; a longer text is read alone."""
BATCHES: Callable[..., Any] = minibatch
MODEL, TOKENIZER, NAMED = "model.onnx", "tokenizer.json", "encoder.json"
"""Files of a saved component: the first two, or the last one."""


class EncoderPipe:
    """See `make_hocrf_encoder`. The encoder is loaded on first use, or with the pipeline."""

    def __init__(
        self,
        name: str,
        folder: str,
        file: str | None,
        pool: str,
        window: int,
        threads: int,
        saved: bool,
    ) -> None:
        self.name, self.folder, self.file = name, folder, file
        self.pool, self.window, self.threads, self.saved = pool, window, threads, saved
        self._files: EncoderFiles | None = None
        self._named: dict[str, Any] | None = None  # if saved without the encoder
        self._running: dict[int, Encoder] = {}  # by process

    @property
    def files(self) -> EncoderFiles:
        """The encoder's files.

        RAISES (ValueError): H491 or H492 if they are not in the folder, H497 if they differ from those that
            the pipeline was saved with.
        """
        if self._files is None:
            files = EncoderFiles.find(Path(self.folder), self.file, self.name)
            if self._named is not None and files.checksum != self._named["checksum"]:
                other = Encoder(files, self.pool, self.window, self.threads, self.name)
                current = {
                    "folder": self.folder,
                    "found": files.checksum[:12],
                    "width": other.width,
                }
                saved, width = self._named["checksum"][:12], self._named["width"]
                raise ValueError(
                    Errors.H497.format(**current, name=self.name, checksum=saved, expected=width)
                )
            self._files = files
        return self._files

    @property
    def encoder(self) -> Encoder:
        """The encoder of this process: threads of a parent do not run in a child. The parent's encoder stays
        in the child's memory, since ending it would wait for these threads.

        RAISES (ValueError): H490 to H495 or H497 for an encoder that cannot be run.
        """
        process = os.getpid()
        if process not in self._running:
            settings = self.pool, self.window, self.threads, self.name
            self._running[process] = Encoder(self.files, *settings)
        return self._running[process]

    def __call__(self, doc: Doc) -> Doc:
        """Set the tensor of a Doc, and return it."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 1000) -> Iterator[Doc]:
        """Set the tensors of Docs. They do not depend on which Docs are in a batch.

        RAISES (ValueError): H490 to H497 for an encoder that cannot be run.
        """
        batches: Iterable[list[Doc]] = BATCHES(stream, batch_size)
        for docs in batches:
            for first, last in stretches(map(len, docs), TOGETHER):
                batch = docs[first:last]
                texts = [[token.text for token in doc] for doc in batch]
                tensors: list[Any] = self.encoder.rows(texts)
                for doc, rows in zip(batch, tensors):
                    doc.tensor = rows
                    yield doc

    def to_bytes(self, **_: Any) -> bytes:
        """Return the saved component, with the files that `to_disk` writes."""
        data: bytes = srsly.msgpack_dumps(self._saved())
        return data

    def from_bytes(self, data: bytes, **_: Any) -> "EncoderPipe":
        """Load a saved component."""
        return self._become(srsly.msgpack_loads(data))

    def to_disk(self, path: Path | str, **_: Any) -> None:
        """Write a folder: the encoder's two files, or only encoder.json if `saved` is false."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        saved = self._saved()
        for name in (MODEL, TOKENIZER, NAMED):  # files saved here earlier are removed
            if name in saved:
                (folder / name).write_bytes(saved[name])
            else:
                (folder / name).unlink(missing_ok=True)

    def from_disk(self, path: Path | str, **_: Any) -> "EncoderPipe":
        """Load a saved component. RAISES (ValueError): H499 if files are missing."""
        read = {
            name: (Path(path) / name).read_bytes()
            for name in (MODEL, TOKENIZER, NAMED)
            if (Path(path) / name).is_file()
        }
        return self._become(read, str(path))

    def _saved(self) -> dict[str, bytes]:
        if self.saved:
            return {MODEL: self.files.read(), TOKENIZER: self.files.tokenizer}
        named = {"width": self.encoder.width, "checksum": self.files.checksum}
        return {NAMED: srsly.json_dumps(named).encode()}

    def _become(self, saved: dict[str, bytes], place: str = "its bytes") -> "EncoderPipe":
        if not ({MODEL, TOKENIZER} <= set(saved) or NAMED in saved):
            found = ", ".join(saved) or "none"
            raise ValueError(Errors.H499.format(name=self.name, found=found, place=place))
        self._files = self._named = None
        self._running.pop(os.getpid(), None)
        if NAMED in saved:
            self._named = srsly.json_loads(saved[NAMED])
        else:
            self._files = EncoderFiles(saved[MODEL], saved[TOKENIZER], place)
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_running": {}}
