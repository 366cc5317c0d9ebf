r"""Shared by several commands: options, reading a config with overrides, checking names of output files, and
writing a config that `spacy train` reads back unchanged.

`Config.to_str` escapes "$" as "$$", but spaCy parses the file twice and keeps "$$". The JSON escape "\u0024"
is a dollar sign either way.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated

from spacy.cli._util import NoSuchOption, parse_config_overrides  # type: ignore[attr-defined]
from spacy.util import load_config
from thinc.api import Config
from typer import Argument, Context, Option

from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.files import write_whole
from spacy_hocrf.cli.folders import WorkingFolder

__all__ = [
    "BestAt",
    "Code",
    "Component",
    "ConfigPath",
    "EncoderFolder",
    "Folds",
    "Force",
    "Goal",
    "GroupBy",
    "Lang",
    "Model",
    "Results",
    "Seed",
    "SpansKey",
    "Table",
    "Teachers",
    "Vectors",
    "check_name",
    "check_path",
    "is_page",
    "names_in",
    "overridden",
    "write_config",
    "written",
]


class BestAt(str, Enum):
    """The quality that a model is tuned for."""

    FIELDS = "fields"  # as many right spans as possible
    TEXTS = "texts"  # as many entirely right texts as possible


Goal = Annotated[
    BestAt,
    Option(
        "--for",
        help="What to aim for: fields (as many right spans as possible) or texts (as many entirely right "
        "texts as possible)",
    ),
]
Teachers = Annotated[
    str | None,
    Option("--teachers", help="Keys of doc.spans with other systems' predictions: llm,gliner"),
]
Code = Annotated[
    Path | None, Option("--code", "-c", help="Python file with code that the pipeline needs")
]
Component = Annotated[
    str | None, Option("--component", help="Name of the component, if there are several of ours")
]
ConfigPath = Annotated[Path, Argument(help="Config of the pipeline", exists=True, dir_okay=False)]
EncoderFolder = Annotated[
    Path | None,
    Option("--encoder", "-e", help="Folder of a frozen encoder: an ONNX model and tokenizer.json"),
]
Folds = Annotated[int, Option("--folds", "-k", min=2, help="Number of folds")]
Force = Annotated[bool, Option("--force", "-F", help="Replace OUTPUT if it exists")]
GroupBy = Annotated[
    str | None,
    Option("--group-by", help="Extension attribute: Docs with the same value stay in one fold"),
]
Lang = Annotated[str, Option("--lang", "-l", help="Two-letter code of the language")]
Model = Annotated[str, Argument(help="A trained pipeline: a package, or a folder")]
Results = Annotated[
    Path | None, Option("--output", "-o", help="Write the results here (JSON)", dir_okay=False)
]
Seed = Annotated[int, Option("--seed", min=0, help="Seed of the split into folds")]
SpansKey = Annotated[
    str | None,
    Option("--spans-key", "-sk", help="Take doc.spans under this key instead of doc.ents"),
]
Table = Annotated[
    Path | None,
    Option(
        "--output",
        "-o",
        help="Write the results here: the table as LaTeX (.tex) or .csv, or all numbers (JSON)",
        dir_okay=False,
    ),
]
Vectors = Annotated[
    str | None,
    Option("--vectors", "-v", help="Package or folder of a pipeline that has word vectors"),
]


def overridden(path: Path, ctx: Context) -> Config:
    """Load a config, not interpolated, and apply the overrides from the command line.

    RAISES (ValueError): H567 for a file that is not text, H574 for an unknown option.
    """
    try:
        overrides = parse_config_overrides(ctx.args)
    except NoSuchOption as error:
        known = ", ".join(each.opts[0] for each in ctx.command.params if each.opts[0][0] == "-")
        text = CommandErrors.H574.format(
            found=error.option_name, command=ctx.command.name, known=known
        )
        raise ValueError(text) from None
    try:
        return load_config(path, overrides=overrides, interpolate=False)
    except UnicodeDecodeError as error:
        raise ValueError(CommandErrors.H567.format(path=path, reason=error)) from None


def is_page(path: Path) -> bool:
    """Does the file name end in .html or .htm?"""
    return path.suffix.lower() in (".html", ".htm")


KINDS = {
    "page": (is_page, "a page, whose name ends in .html"),
    "data": (lambda path: path.suffix == ".json", "a file for JSON, whose name ends in .json"),
    "table": (
        lambda path: path.suffix.lower() in (".json", ".csv", ".tex"),
        "a file for a table, whose name ends in .tex or .csv, or for JSON, in .json",
    ),
    "docs": (lambda path: path.suffix == ".spacy", "a file for Docs, whose name ends in .spacy"),
}
"""Kinds of output files: a test of the file name, and the description for the error message."""


def check_name(option: str, path: Path | None, kind: str) -> None:
    """Check the name of an output file. RAISES (ValueError): H074 if it does not fit this kind of KINDS."""
    fits, expected = KINDS[kind]
    if path is not None and not fits(path):
        raise ValueError(CommandErrors.H074.format(option=option, found=path, expected=expected))


def write_config(config: Config, path: Path, header: str = "") -> None:
    """Write a config file. header (str): comment at its top."""
    write_whole(path, header + config.to_str().replace("$$", r"\u0024"))


def names_in(option: str) -> list[str]:
    """Split the comma-separated names of an option."""
    return [name.strip() for name in option.split(",")]


def check_path(path: Path | str | None) -> None:
    """Check a path. RAISES (ValueError): H269 if a config cannot hold it."""
    if "${" in str(path):
        raise ValueError(CommandErrors.H269.format(path=path))


@contextmanager
def written(output: Path, *, force: bool) -> Iterator[Path]:
    """Yield a temporary folder next to OUTPUT, which replaces OUTPUT at the end if nothing goes wrong.

    RAISES (ValueError): H157 if OUTPUT exists, unless it is an empty folder or `force` is set.
    """
    if output.exists() and not force and (output.is_file() or any(output.iterdir())):
        raise ValueError(CommandErrors.H157.format(path=output))
    output.parent.mkdir(parents=True, exist_ok=True)
    with WorkingFolder(f".{output.name}-", output.parent) as folder:
        new = folder / "new"
        new.mkdir()
        yield new
        old = folder.with_name(f"{folder.name}-old")  # not lost if killed here
        if output.exists():
            output.rename(old)
        new.rename(output)
        if old.is_dir():
            shutil.rmtree(old)
        else:
            old.unlink(missing_ok=True)
