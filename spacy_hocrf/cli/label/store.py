"""What a person has decided, on disk before the page says so.

A folder has `label.json`, the labels and a digest of the texts, and `annotations.jsonl`, to which every
decision is appended as a line and synchronized. A line that a crash has cut off was never called saved: it is
taken away.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from spacy_hocrf.cli.annotate.parts import write_whole
from spacy_hocrf.cli.errors import CommandErrors

__all__ = ["Chars", "Decision", "DecisionStore", "check", "labels_in"]

Chars = tuple[int, int, str]
"""First character of a span, one past its last, and its label."""
SETTINGS, LOG = "label.json", "annotations.jsonl"
VERSION = 1


class Decision(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a person has said about a text.

    text (int): its number, from 0 on.
    spans (Optional[tuple[Chars, ...]]): its spans; None if it was skipped.
    unknown (tuple[tuple[int, int], ...]): stretches that the person cannot tell anything about.
    undone (bool): instead, the last decision that still holds is taken back, which was about this text.
    facts (Optional[Dict]): what the loop wants to be told again when the folder is opened again.
    """

    text: int
    spans: tuple[Chars, ...] | None = None
    unknown: tuple[tuple[int, int], ...] = ()
    undone: bool = False
    facts: dict[str, Any] | None = None


class _Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a folder was begun with. digest (str): of its texts."""

    version: int
    texts: int
    digest: str
    labels: tuple[str, ...]


class DecisionStore:
    """The decisions about some texts, in a folder that nobody else writes to.

    decisions (list[Decision]): as they were made, those that were undone and the undoing among them.
    cut (int): bytes of a last line that was not written to its end, and has been taken away.

    folder (Path): a new or an empty one, or one of the same texts; there may be more of them at the end now.
    texts (Sequence[str]): the texts. labels (Sequence[str]): that their spans may have.
    RAISES (ValueError): H540 for a folder of something else, H541 for one of other texts, H542 for one with
        labels besides these, H543 for a line that is damaged.
    """

    def __init__(self, folder: Path, texts: Sequence[str], labels: Sequence[str]) -> None:
        self._check_texts(folder, texts)
        self._path = folder / LOG
        content = self._path.read_bytes() if self._path.exists() else b""
        size = content.rfind(b"\n") + 1
        self.decisions, self.cut = self._read(content[:size], texts), len(content) - size
        missing = {y for each in self.decisions for *_, y in each.spans or ()} - {*labels}
        if missing:
            found = ", ".join(sorted(missing))
            raise ValueError(CommandErrors.H542.format(path=folder, found=found))
        folder.mkdir(parents=True, exist_ok=True)
        settings = _Settings(VERSION, len(texts), _digest(texts), tuple(labels))
        write_whole(folder / SETTINGS, msgspec.json.format(msgspec.json.encode(settings)) + b"\n")
        self._file = self._path.open("ab", buffering=0)
        self._file.truncate(size)

    def append(self, decision: Decision) -> None:
        """Write a decision; it is on disk when this returns.

        RAISES (ValueError): H544 if it cannot be written. The file is as it was before then.
        """
        line, size = msgspec.json.encode(decision) + b"\n", os.fstat(self._file.fileno()).st_size
        try:
            if self._file.write(line) != len(line):
                raise OSError("there is no space for all of it")
            os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(size)
            raise ValueError(CommandErrors.H544.format(path=self._path, reason=error)) from error
        self.decisions.append(decision)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _check_texts(self, folder: Path, texts: Sequence[str]) -> None:
        """RAISES (ValueError): H540 or H541 for a folder of something else."""
        found = _settings(folder)
        if found is None:
            return
        if found.texts > len(texts) or found.digest != _digest(texts[: found.texts]):
            told = f"there were {found.texts:,}, now there are {len(texts):,}"
            told = (
                told if found.texts > len(texts) else f"of the first {found.texts:,}, some differ"
            )
            raise ValueError(CommandErrors.H541.format(path=folder, found=told))

    def _read(self, content: bytes, texts: Sequence[str]) -> list[Decision]:
        """The decisions of whole lines. RAISES (ValueError): H543 for a line that is damaged."""
        decisions, holding = list[Decision](), list[int]()
        for number, line in enumerate(content.split(b"\n")[:-1], start=1):
            try:
                decision = msgspec.json.decode(line, type=Decision)
                check(decision, texts)
                if decision.undone and (not holding or holding.pop() != decision.text):
                    raise ValueError("it takes back what was not the last decision")
            except ValueError as error:
                known = {"path": self._path, "line": number, "reason": error}
                raise ValueError(CommandErrors.H543.format(**known)) from error
            if not decision.undone:
                holding.append(decision.text)
            decisions.append(decision)
        return decisions


LOCK = ".lock"
"""Name of the file by which a process has a folder for itself."""


def labels_in(folder: Path) -> tuple[str, ...]:
    """Labels that a folder was begun with, in their order; none for a new one.

    RAISES (ValueError): H540 for a folder of something else.
    """
    found = _settings(folder)
    return () if found is None else found.labels


def _settings(folder: Path) -> _Settings | None:
    """Read what a folder was begun with. RAISES (ValueError): H540 for a folder of something else."""
    path = folder / SETTINGS
    if not path.exists():
        if folder.is_dir() and any(each.name != LOCK for each in folder.iterdir()):
            raise ValueError(CommandErrors.H540.format(path=folder, reason=f"no {SETTINGS}"))
        return None
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_Settings)
    except (OSError, ValueError) as error:
        raise ValueError(CommandErrors.H540.format(path=folder, reason=error)) from error
    if found.version != VERSION:
        raise ValueError(CommandErrors.H540.format(path=folder, reason=f"version {found.version}"))
    return found


def check(decision: Decision, texts: Sequence[str]) -> None:
    """RAISES (ValueError): for a text that there is not, or stretches that are outside it, or overlap."""
    if not 0 <= decision.text < len(texts):
        raise ValueError(f"there is no text {decision.text}")
    end, places = 0, [span[:2] for span in decision.spans or ()]
    for start, stop in sorted([*places, *decision.unknown]):
        if not end <= start < stop <= len(texts[decision.text]):
            raise ValueError(f"the stretch from {start} to {stop} is outside, or overlaps another")
        end = stop


def _digest(texts: Sequence[str]) -> str:
    digest = sha256()
    for text in texts:
        digest.update(sha256(text.encode("utf8", "surrogatepass")).digest())
    return digest.hexdigest()
