"""`python -m spacy hocrf annotate`: annotate many texts, and resume after an interruption.

The output is protected by a file lock, which the operating system releases when the process ends, however it
ends. A killed process leaves an empty, unlocked file, never a stale lock.
"""

import errno
import gc
import os
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Annotated

import srsly
from tqdm import tqdm
from typer import Argument, Option
from wasabi import msg
from wasabi.tables import table

from spacy_hocrf.annotation.acceptance import Acceptance
from spacy_hocrf.cli.accept import warn_unlike
from spacy_hocrf.cli.annotate.annotator import Annotator
from spacy_hocrf.cli.annotate.formats import ACCEPTED, FORMATS, PROBABILITY, check_columns
from spacy_hocrf.cli.annotate.parts import Job, Parts, check_fields, digest_of, plan_of
from spacy_hocrf.cli.annotate.processes import DEATHS, ProcessPool
from spacy_hocrf.cli.annotate.sources import SOURCES, Chunk, chunks_of, parquet_files, source_files
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.files import write_whole
from spacy_hocrf.cli.options import Code, Component, Model
from spacy_hocrf.warnings import Warnings

__all__ = ["annotate_cli", "locked"]

MAX_REJECTS = 5
"""Number of rejected texts that are printed."""
LOCKED_ERRORS = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}
"""Error numbers for a file that another process has locked."""


def annotate_cli(
    model: Model,
    texts: Annotated[
        Path,
        Argument(help=f"Texts, or a folder of them: {', '.join(SOURCES)}", exists=True),
    ],
    output: Annotated[
        Path, Argument(help=f"File ({', '.join(FORMATS)}), or a folder for many of them")
    ],
    format_: Annotated[
        str, Option("--format", "-f", help="Format of files in a folder: jsonl, parquet or spacy")
    ] = "jsonl",
    text: Annotated[str, Option("--text", help="Field, or column, with the text")] = "text",
    into: Annotated[str, Option("--into", help="Field, or column, for the spans")] = "spans",
    n_best: Annotated[
        int, Option("--n-best", min=0, help="Also write the n best readings, to 'readings'")
    ] = 0,
    at_least: Annotated[
        float,
        Option("--at-least", min=0, max=1, help="Also write spans this probable to 'candidates'"),
    ] = 0.0,
    workers: Annotated[int, Option("--workers", "-w", min=1, help="Number of processes")] = 1,
    review: Annotated[
        Path | None,
        Option(
            "--review",
            help="Also write the texts that are not accepted here (.jsonl)",
            dir_okay=False,
        ),
    ] = None,
    size: Annotated[int, Option("--size", min=1, help="Number of texts in a part")] = 5000,
    component: Component = None,
    code: Code = None,
) -> None:
    """Annotate any number of texts in constant memory.

    The output is written in parts. If the command is interrupted, run it again to continue. Texts that cannot
    be read are written to a separate file.

    DOCS: docs/annotate.md
    """
    job = Job(
        model=model,
        code=None if code is None else str(code),
        component=component,
        text=text,
        into=into,
        n_best=n_best,
        at_least=at_least,
        size=size,
    )
    check_fields(job.text, job.fields)
    if review is not None and (review.suffix, output.suffix) != (".jsonl", ".jsonl"):
        expected = "a file of JSON lines (.jsonl), as OUTPUT must be"
        outputs = f"{review}, and OUTPUT {output}"
        raise ValueError(
            CommandErrors.H074.format(option="--review", found=outputs, expected=expected)
        )
    files, parts = source_files(texts), _parts_of(output, format_)
    suffix = files[0].suffix
    if ".parquet" in (suffix, parts.suffix):
        parquet_files()
    output.parent.mkdir(parents=True, exist_ok=True)
    with locked(output.with_name(f"{output.name}.lock"), output):
        annotator = Annotator(job, suffix, parts)
        if review is not None and annotator.acceptance is None:
            raise ValueError(CommandErrors.H504.format(model=model, quoted=shlex.quote(model)))
        _annotate(annotator, workers, files, output)
        if annotator.acceptance is not None and output.suffix == ".jsonl":
            _report_accepted(output, review, annotator.acceptance)
        if output.suffix:  # only now: the same command can still write `review`
            parts.drop()


def _annotate(annotator: Annotator, workers: int, files: list[Path], output: Path) -> None:
    """Annotate the chunks without parts, and join all parts, which stay.

    RAISES (ValueError): H347 if the texts have changed meanwhile, H350 if the output file exists, H402 for
        missing parts, H403 if no text could be read, H562 for tables with incompatible columns.
    """
    job, parts, rejects = annotator.job, annotator.parts, _rejects_of(output)
    plan = plan_of(job, parts.suffix, digest_of(annotator.folder, job.code), files)
    count = sum(map(SOURCES[annotator.source].count, files))
    if output.suffix and output.exists() and not parts.folder.exists():
        if not parts.gathered(plan):
            parts.sweep()  # in case the last run was killed while deleting them
            raise ValueError(CommandErrors.H350.format(path=output))
        _report(rejects.read_bytes() if rejects.exists() else b"", count, output)
        return
    if parts.suffix == annotator.source == ".parquet":
        check_columns(files)
    parts.begin(plan)
    numbers = list[int]()
    with tqdm(total=count, unit=" texts", unit_scale=True, smoothing=0.1) as progress:
        chunks = _unfinished(chunks_of(files, job.size), parts, progress, numbers)
        for size in _annotated(annotator, chunks, workers):
            progress.update(size)
    parts.tidy()
    parts.check(plan_of(job, parts.suffix, plan["digest"], files))
    parts.check_whole(len(numbers))
    rejected = parts.rejected()
    parts.write_rejected(rejected, rejects)
    if count and len(rejected.splitlines()) == count:
        parts.drop()
        _print(rejected, rejects)
        raise ValueError(CommandErrors.H403.format(found=count, path=rejects))
    if output.suffix:
        parts.gather(output, len(numbers))
    _report(rejected, count, output)


def _annotated(annotator: Annotator, chunks: Iterator[Chunk], n: int) -> Iterator[int]:
    """Annotate all chunks, in this process or in several: each worker gets the job once and then one chunk
    after the other, and writes the parts itself; only numbers of texts come back.

    n (int): 1 for this process, else the number of worker processes, which end with this one, however it
        ends.
    YIELDS (int): number of texts of each finished chunk, in any order.
    RAISES (ValueError): H349 if workers die repeatedly on a chunk.
    """
    if n == 1:
        gc.freeze()  # the pipeline stays: spare the garbage collector
        try:
            yield from map(annotator, chunks)
        finally:
            gc.unfreeze()
        return
    pool = ProcessPool(n, partial(Annotator, annotator.job, annotator.source, annotator.parts))
    try:
        yield from pool.map(chunks, _fatal)
    finally:
        pool.end()


def _fatal(chunk: Chunk) -> str:
    """Error message for a chunk on which workers die."""
    last = chunk.first + chunk.size - 1
    return CommandErrors.H349.format(times=DEATHS, first=chunk.first, last=last)


def _parts_of(output: Path, format_: str) -> Parts:
    """Return the folder of parts for an output file, or the output folder itself.

    RAISES (ValueError): H351 for an unknown format.
    """
    suffix = output.suffix or f".{format_}"
    if suffix not in FORMATS:
        raise ValueError(CommandErrors.H351.format(found=suffix, known=", ".join(FORMATS)))
    return Parts(output.with_name(f"{output.name}.parts") if output.suffix else output, suffix)


def _report_accepted(output: Path, review: Path | None, acceptance: Acceptance) -> None:
    """Print how many texts are accepted, and warn if they are unlike those that the threshold was found on.

    review (Optional[Path]): file to which the other texts are written.
    """
    probabilities, to_read, accepted = list[float](), list[bytes](), 0
    with output.open("rb") as lines:
        for line in lines:
            row = srsly.json_loads(line)
            probabilities.append(row[PROBABILITY])
            accepted += row[ACCEPTED]
            if review is not None and not row[ACCEPTED]:
                to_read.append(line)
    if review is not None:
        write_whole(review, b"".join(to_read))
    others = len(probabilities) - accepted
    msg.good(f"{accepted:,} texts are accepted, {others:,} are to be read", review or "")
    warn_unlike(acceptance, probabilities)


def _rejects_of(output: Path) -> Path:
    """Return the path of the file for rejected texts."""
    return output.with_name(f"{output.name}.rejects.jsonl")


def _unfinished(
    chunks: Iterator[Chunk], parts: Parts, progress: "tqdm[None]", numbers: list[int]
) -> Iterator[Chunk]:
    """Yield chunks without a finished part; the numbers of all chunks are added to `numbers`."""
    for chunk in chunks:
        numbers.append(chunk.number)
        if not parts.done(chunk.number):
            yield chunk
        elif not progress.disable:  # finished chunks must not affect the estimated speed
            progress.n += chunk.size
            progress.last_print_n += chunk.size
            progress.initial += chunk.size


def _report(rejected: bytes, count: int, output: Path) -> None:
    """Print the rejected texts and the totals."""
    _print(rejected, _rejects_of(output))
    msg.good(f"{count:,} texts, of which {len(rejected.splitlines()):,} rejected", output)


def _print(rejected: bytes, path: Path) -> None:
    """Print the first texts that were rejected."""
    rows = [srsly.json_loads(line.decode("utf8", "replace")) for line in rejected.splitlines()]
    if rows:
        shown = [(row["number"], row["reason"]) for row in rows[:MAX_REJECTS]]
        print(table(shown, header=("text", "reason"), divider=True))
        msg.warn(f"{len(rows):,} texts could not be read", path)


@contextmanager
def locked(path: Path, locked_path: Path) -> Iterator[None]:
    """Hold a lock while the body runs; the lock file is deleted afterwards.

    path (Path): the lock file. locked_path (Path): the locked path, for the message.
    RAISES (ValueError): H400 if another process has the lock.
    """
    with _open_locked(path, locked_path):
        try:
            yield
        finally:
            # safe against races: _open_locked checks that the file that it has locked still has this name
            with suppress(OSError):  # Windows deletes no open file, and leaves it empty
                path.unlink()


def _open_locked(path: Path, locked_path: Path) -> IO[bytes]:
    """Open and lock a file. RAISES (ValueError): H400 if another process has locked it."""
    while True:
        file = path.open("ab")
        try:
            _lock(file)
            if os.fstat(file.fileno()).st_ino == path.stat().st_ino:
                return file
        except FileNotFoundError:  # deleted by its last owner since it was opened
            pass
        except OSError as error:
            if error.errno in LOCKED_ERRORS:
                file.close()
                raise ValueError(CommandErrors.H400.format(path=locked_path)) from None
            warnings.warn(Warnings.W048.format(path=locked_path, reason=error), stacklevel=4)
            return file
        file.close()


if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes]) -> None:
        """RAISES (OSError): if another process has it, or the file system has no locks."""
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(file: IO[bytes]) -> None:
        """RAISES (OSError): if another process has it, or the file system has no locks."""
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
