"""What a training has come to, in a file, so that one that is ended goes on from there.

The optimiser's arrays are written as a whole or not at all, and read back only if the same corpus, features
and settings give, at the point that was reached, the same gradient to the last bit. The weights in the end
are then those of a training that was never ended.
"""

import hashlib
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from spacy.util import logger

from spacy_hocrf.errors import Errors

__all__ = ["Checkpoint", "Kept", "fingerprint"]

Vector = NDArray[np.float64]
OF = "of"  # what the arrays are of


class Kept(Protocol):
    """An optimiser that can be kept."""

    best_x: Vector
    best_f: float
    iterations: int
    status: str

    def state(self) -> dict[str, NDArray[Any]]:
        """All that the next points follow from."""
        ...

    def resume(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from there."""
        ...


class Checkpoint:
    """A file for what a training has come to.

    path (Path): of the file.
    every (int): iterations after which it is written anew.
    of (str): says which training it is.
    """

    def __init__(self, path: Path, every: int, of: str) -> None:
        self._path, self._every, self._of = path, every, of

    def read_into(self, optimiser: Kept, gradient_at: Callable[[Vector], Vector]) -> None:
        """Let an optimiser go on from the file, if there is one, and it is of this training.

        gradient_at (Callable[[Vector], Vector]): of what is minimised, at a point, float64 [F].
        RAISES (ValueError): H256 for a file that cannot be read.
        """
        if not self._path.exists():
            return
        try:
            with self._path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                state = {name: file[name] for name in file.files}
            ours = state.pop(OF).tobytes().decode() == self._of
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            text = Errors.H256.format(path=self._path, reason=error)
            raise ValueError(text) from error
        if ours:
            ours = np.array_equal(gradient_at(state["best_x"]), state["best_g"])
        if ours:
            optimiser.resume(state)
        verdict = (
            f"going on after {optimiser.iterations} iterations" if ours else "of another training"
        )
        logger.info("spacy-hocrf: checkpoint %s: %s", self._path, verdict)

    def note(self, optimiser: Kept) -> None:
        """An iteration is done."""
        if optimiser.status != "running":
            self._path.unlink(missing_ok=True)
        elif optimiser.iterations and optimiser.iterations % self._every == 0:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            temporary = self._path.with_name(f"{self._path.name}.writing")
            arrays: dict[str, Any] = optimiser.state()
            arrays[OF] = np.frombuffer(self._of.encode(), dtype=np.uint8)
            with temporary.open("wb") as file:
                np.savez(file, **arrays)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._path)


def fingerprint(settings: object, *arrays: NDArray[Any]) -> str:
    """Says which training it is: equal for the same settings, features and prior."""
    digest = hashlib.sha256(repr(settings).encode())
    for array in arrays:
        digest.update(f"{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
