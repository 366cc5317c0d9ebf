"""Parts of the output: files that are written atomically, so that a job can be resumed.

A job of many hours may be interrupted at any time. Finished parts are kept, and no part is ever half written.
The folder of the parts has a plan, which records the texts, the model and the settings.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path
from typing import Any

from spacy_hocrf.cli.annotate.formats import CANDIDATES, FORMATS, READINGS
from spacy_hocrf.cli.annotate.sources import Rejected
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.files import UNFINISHED, write_whole

__all__ = ["Job", "Parts", "check_fields", "digest_of", "plan_of"]

PLAN = "_plan.json"
REJECTS = "_rejects"
BLOCK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Job:
    """The settings of an annotation job.

    model (str): a folder, or the name of a package. code (Optional[str]): Python file that it needs.
    component (Optional[str]): component whose spans are written; None for the only one of ours.
    text (str): field with the text. into (str): field for the spans.
    n_best (int): number of readings to write to the field "readings"; 0 for none.
    at_least (float): smallest probability of the spans written to the field "candidates"; 0 for none.
    size (int): number of texts in a part.
    """

    model: str
    code: str | None = None
    component: str | None = None
    text: str = "text"
    into: str = "spans"
    n_best: int = 0
    at_least: float = 0.0
    size: int = 5000

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Names of the fields that are written for each text, with descriptions for messages."""
        optional = ((READINGS, "readings", self.n_best), (CANDIDATES, "candidates", self.at_least))
        return [(self.into, "the spans"), *((name, role) for name, role, n in optional if n)]


def check_fields(text: str, fields: Sequence[tuple[str, str]]) -> None:
    """Check the names of the fields to write.

    text (str): field with the text.
    RAISES (ValueError): H247 if two fields, or a field and the text, have the same name.
    """
    roles = {text: "the text"}
    for name, role in fields:
        if name in roles:
            raise ValueError(CommandErrors.H247.format(found=name, one=roles[name], other=role))
        roles[name] = role


@dataclass(frozen=True)
class Parts:
    """The folder of a job's parts.

    folder (Path): folder of the parts. suffix (str): one of FORMATS.
    """

    folder: Path
    suffix: str

    def begin(self, plan: Mapping[str, Any]) -> None:
        """Make the folder, or continue in one that has the same plan.

        plan (Mapping[str, Any]): see `plan_of`.
        RAISES (ValueError): H347 for the parts of another job, H348 for a folder without a plan.
        """
        path = self.folder / PLAN
        if not path.exists():
            others = self.folder.iterdir() if self.folder.exists() else ()
            # an interrupted job may have left an unfinished plan
            if not all(fnmatch(other.name, f"{PLAN}.*{UNFINISHED}") for other in others):
                raise ValueError(CommandErrors.H348.format(path=self.folder))
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, json.dumps(plan, indent=2).encode())
        self.check(plan)
        self.tidy()

    def check(self, plan: Mapping[str, Any]) -> None:
        """Compare plans. RAISES (ValueError): H347 for parts of another job, or if the texts have changed."""
        saved: Mapping[str, Any] = json.loads((self.folder / PLAN).read_bytes())
        changed = [name for name in plan if saved.get(name) != plan[name]]
        if changed:
            names = ", ".join(changed)
            raise ValueError(CommandErrors.H347.format(path=self.folder, found=names))

    def tidy(self) -> None:
        """Delete unfinished files of processes that have ended."""
        for path in self.folder.glob(f"*{UNFINISHED}"):
            path.unlink(missing_ok=True)

    def check_whole(self, n: int) -> None:
        """Check for completeness. RAISES (ValueError): H402 unless parts 0 to n - 1 exist."""
        missing = [number for number in range(n) if not self.done(number)]
        if missing:
            text = CommandErrors.H402.format(
                path=self.folder, found=len(missing), all=n, first=self._path(missing[0]).name
            )
            raise ValueError(text)

    def done(self, number: int) -> bool:
        """Is a part finished?"""
        return self._path(number).exists()

    def write(self, number: int, content: bytes, rejected: Sequence[Rejected]) -> None:
        """Write the rejected texts of a part, and then the part."""
        rejects = self._rejects(number)
        if rejected:
            write_whole(rejects, _as_lines(rejected))
        else:
            # an earlier, interrupted attempt may have rejected texts
            rejects.unlink(missing_ok=True)
        write_whole(self._path(number), content)

    def rejected(self) -> bytes:
        """Collect the rejected records of all parts, one JSON object per line."""
        paths = sorted(self.folder.glob(f"{REJECTS}-*.jsonl"))
        return b"".join(path.read_bytes() for path in paths)

    def write_rejected(self, rejected: bytes, path: Path) -> None:
        """Write the rejected records to a file; if there are none, delete the file of an earlier job."""
        if rejected:
            gathered = self.folder / f"{REJECTS}.jsonl"  # here, so that `tidy` can clean up
            write_whole(gathered, rejected)
            gathered.replace(path)
        else:
            path.unlink(missing_ok=True)

    def gather(self, output: Path, n: int) -> None:
        """Join parts 0 to n - 1 into one file."""
        unfinished = _unfinished(output)
        try:
            FORMATS[self.suffix].join([self._path(number) for number in range(n)], unfinished)
            unfinished.replace(output)
        finally:
            unfinished.unlink(missing_ok=True)

    def drop(self) -> None:
        """Delete the parts; the folder is renamed first, so that its rest does not look like an open job."""
        self.sweep()
        if self.folder.exists():
            self.folder.replace(_unfinished(self.folder))
            self.sweep()

    def sweep(self) -> None:
        """Delete the rest of parts that were joined already, the plan last."""
        folder = _unfinished(self.folder)
        for path in folder.glob("*"):
            if path.name != PLAN:
                path.unlink()
        (folder / PLAN).unlink(missing_ok=True)
        if folder.exists():
            folder.rmdir()

    def gathered(self, plan: Mapping[str, Any]) -> bool:
        """Were the parts of this plan joined, but not yet all deleted?"""
        path = _unfinished(self.folder) / PLAN
        return not self.folder.exists() and path.exists() and json.loads(path.read_bytes()) == plan

    def _path(self, number: int) -> Path:
        """Return the path of a part."""
        return self.folder / f"part-{number:06}{self.suffix}"

    def _rejects(self, number: int) -> Path:
        return self.folder / f"{REJECTS}-{number:06}.jsonl"


def plan_of(job: Job, suffix: str, digest: str, files: Sequence[Path]) -> dict[str, Any]:
    """Collect the data that parts depend on, as JSON values.

    suffix (str): format of the parts, one of FORMATS. digest (str): digest of the model, see `digest_of`.
    """
    stats = [(file.name, file.stat()) for file in files]
    texts = [[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats]
    return {**asdict(job), "format": suffix, "digest": digest, "texts": texts}


def digest_of(folder: Path, code: str | None) -> str:
    """SHA-256 of all files of a model, and of the Python file that it needs."""
    digest = sha256()
    paths = [*sorted(folder.rglob("*")), *([] if code is None else [Path(code)])]
    for path in filter(Path.is_file, paths):
        name = path.relative_to(folder).as_posix() if path.is_relative_to(folder) else "code"
        digest.update(f"{name}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
    return digest.hexdigest()


def _unfinished(path: Path) -> Path:
    return path.with_name(f"{path.name}{UNFINISHED}")


def _as_lines(rejected: Sequence[Rejected]) -> bytes:
    rows = (json.dumps(record._asdict(), ensure_ascii=False) for record in rejected)
    return "".join(f"{row}\n" for row in rows).encode("utf8", "backslashreplace")
