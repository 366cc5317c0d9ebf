"""The person's decisions on disk, each written before the page reports it as saved.

A folder has `label.json`, with the labels and a digest of the texts, and `annotations.jsonl`, to which every
decision is appended as a line and synced. A line cut off by a crash was never reported as saved: it is
removed.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.files import write_whole

__all__ = ["Chars", "Decision", "DecisionStore", "check_decision", "labels_in"]

Chars = tuple[int, int, str]
"""A span: its first character, one past its last, and its label."""
SETTINGS, LOG = "label.json", "annotations.jsonl"
VERSION = 1


class Decision(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A person's decision on a text, or the undoing of one.

    text (int): number of the text, from 0.
    spans (Optional[tuple[Chars, ...]]): its spans; None if it was skipped.
    unknown (tuple[tuple[int, int], ...]): stretches that the person could not annotate.
    undone (bool): this undoes the last decision that still holds, which was on this text.
    facts (Optional[Dict]): the loop's facts on it, passed to the loop again when the folder is reopened.
    """

    text: int
    spans: tuple[Chars, ...] | None = None
    unknown: tuple[tuple[int, int], ...] = ()
    undone: bool = False
    facts: dict[str, Any] | None = None


class _Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The texts and labels that a folder belongs to. digest (str): digest of the texts."""

    version: int
    texts: int
    digest: str
    labels: tuple[str, ...]


class DecisionStore:
    """Stores the decisions on some texts in a folder that no other process writes to.

    decisions (list[Decision]): all decisions in order, including undone ones and their undoing.
    cut (int): number of bytes of an incomplete last line, which was removed.

    folder (Path): new, empty, or one of the same texts, to which others may have been appended.
    texts (Sequence[str]): the texts. labels (Sequence[str]): labels of spans.
    RAISES (ValueError): H540 for a folder with other files, H541 for one of other texts, H542 for one with
        labels besides these, H543 for a damaged line.
    """

    def __init__(self, folder: Path, texts: Sequence[str], labels: Sequence[str]) -> None:
        self._check_texts(folder, texts)
        self._path = folder / LOG
        content = self._path.read_bytes() if self._path.exists() else b""
        size = content.rfind(b"\n") + 1
        self.decisions, self.cut = self._read(content[:size], texts), len(content) - size
        spans = (span for decision in self.decisions for span in decision.spans or ())
        if extra := {label for *_, label in spans} - {*labels}:
            raise ValueError(CommandErrors.H542.format(path=folder, found=", ".join(sorted(extra))))
        folder.mkdir(parents=True, exist_ok=True)
        settings = _Settings(VERSION, len(texts), _digest(texts), tuple(labels))
        write_whole(folder / SETTINGS, msgspec.json.format(msgspec.json.encode(settings)) + b"\n")
        self._file = self._path.open("ab", buffering=0)
        self._file.truncate(size)

    def append(self, decision: Decision) -> None:
        """Append a decision and sync it to disk.

        RAISES (ValueError): H544 if it cannot be written; the file is unchanged then.
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
        """Check the folder. RAISES (ValueError): H540 or H541 if it belongs to something else."""
        settings = _settings(folder)
        if settings is None:
            return
        if settings.texts > len(texts):
            change = f"there were {settings.texts:,}, now there are {len(texts):,}"
        elif settings.digest != _digest(texts[: settings.texts]):
            change = f"of the first {settings.texts:,}, some differ"
        else:
            return
        raise ValueError(CommandErrors.H541.format(path=folder, found=change))

    def _read(self, content: bytes, texts: Sequence[str]) -> list[Decision]:
        """Parse the decisions of complete lines. RAISES (ValueError): H543 for a damaged line."""
        decisions, holding = list[Decision](), list[int]()
        for number, line in enumerate(content.split(b"\n")[:-1], start=1):
            try:
                decision = msgspec.json.decode(line, type=Decision)
                check_decision(decision, texts)
                if decision.undone and (not holding or holding.pop() != decision.text):
                    raise ValueError("it takes back what was not the last decision")
            except ValueError as error:
                text = CommandErrors.H543.format(path=self._path, line=number, reason=error)
                raise ValueError(text) from error
            if not decision.undone:
                holding.append(decision.text)
            decisions.append(decision)
        return decisions


LOCK = ".lock"
"""Name of a folder's lock file."""


def labels_in(folder: Path) -> tuple[str, ...]:
    """Read the labels of a folder, in order; none for a new one.

    RAISES (ValueError): H540 for a folder with other files.
    """
    settings = _settings(folder)
    return () if settings is None else settings.labels


def _settings(folder: Path) -> _Settings | None:
    """Read a folder's settings; None for a new one. RAISES (ValueError): H540 if it has other files."""
    path = folder / SETTINGS
    if not path.exists():
        if folder.is_dir() and any(file.name != LOCK for file in folder.iterdir()):
            raise ValueError(CommandErrors.H540.format(path=folder, reason=f"no {SETTINGS}"))
        return None
    try:
        settings = msgspec.json.decode(path.read_bytes(), type=_Settings)
    except (OSError, ValueError) as error:
        raise ValueError(CommandErrors.H540.format(path=folder, reason=error)) from error
    if settings.version != VERSION:
        raise ValueError(
            CommandErrors.H540.format(path=folder, reason=f"version {settings.version}")
        )
    return settings


def check_decision(decision: Decision, texts: Sequence[str]) -> None:
    """Check a decision. RAISES (ValueError): for an unknown text, or invalid or overlapping stretches."""
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
