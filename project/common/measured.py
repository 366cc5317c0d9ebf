"""What it takes to have a system that finds spans: size, time of training, and speed."""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import srsly
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

MIN_SECONDS = 2.0
"""So long speed is measured."""


@dataclass(frozen=True)
class Measured:
    """One system on one corpus. Times are CPU times of one thread."""

    system: str
    observations: str  # of whom
    order: int
    features: int
    size: int  # bytes on disk
    seconds: float  # of training, observing included
    speed: float  # tokens a second, observing included
    settings: str  # what was chosen


def write(folder: Path, measured: Measured, docs: Sequence[Doc]) -> None:
    """Write predictions beside their measures, and print these."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = name_of(measured)
    srsly.write_json(folder / f"{stem}.json", asdict(measured))
    DocBin(docs=docs).to_disk(folder / f"{stem}.spacy")
    print(measured, flush=True)


def read(folder: Path) -> list[Measured]:
    """What `write` has written, by name."""
    return [Measured(**srsly.read_json(path)) for path in sorted(folder.glob("*.json"))]


def name_of(measured: Measured) -> str:
    """The name of its files."""
    return re.sub(r"\W+", "-", f"{measured.system} {measured.observations} {measured.order}")


def speed_of(tag: Callable[[Sequence[Doc]], object], docs: Sequence[Doc]) -> float:
    """Tokens a CPU second, after a first pass that is not counted. Every pass has Docs of its own."""
    tag(bare(docs))
    seconds, passes = 0.0, 0
    while seconds < MIN_SECONDS:
        fresh = bare(docs)
        begun = time.process_time()
        tag(fresh)
        seconds += time.process_time() - begun
        passes += 1
    return passes * sum(map(len, docs)) / seconds


def bare(docs: Sequence[Doc], vocab: Vocab | None = None) -> list[Doc]:
    """The same tokens without annotation."""
    return [Doc(vocab or doc.vocab, words=[token.text for token in doc]) for doc in docs]


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files of a folder."""
    files = [path] if path.is_file() else path.rglob("*")
    return sum(each.stat().st_size for each in files if each.is_file())
