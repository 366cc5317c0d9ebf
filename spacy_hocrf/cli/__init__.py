"""`python -m spacy hocrf …`: the commands.

spaCy's command line loads the entry points of the group `spacy_cli` (setup.cfg) before every command
of its own; importing this package adds the group `hocrf` to its app, and nothing else. A command is
imported when it is asked for, so that `spacy train` does not pay for it.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, wraps
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import srsly
from spacy.cli._util import app, show_validation_error
from spacy.util import is_package
from typer import Typer
from typer.core import TyperGroup
from typer.main import get_command
from wasabi import msg

__all__ = ["hocrf_cli"]

COMMANDS = (
    "ablate",
    "annotate",
    "auto",
    "calibrate",
    "card",
    "compare",
    "config",
    "convert",
    "cross-fit",
    "debug",
    "doubt",
    "extend",
    "inspect",
    "label",
    "show",
    "temper",
    "templates",
)
"""A module bears the name of its command: that of `cross-fit` is `cross_fit`, and has `cross_fit_cli`."""
FOLDERS = {"annotate", "auto", "convert", "label"}
"""Commands of several modules: they are in `command` of that folder."""

OVERRIDING = {"ablate", "cross-fit", "debug", "doubt"}
"""Commands that take settings of a config as well: `--training.seed 1`."""


WRITTEN = {"output", "page", "weights", "review", "losses", "into"}
"""Parameters of commands that name what is to be written, where they are paths."""
READ = {"model", "systems", "vectors"}
"""Parameters that name what is read, besides those that are paths."""
WHOLE = {"auto", "extend"}
"""Commands that replace a folder as a whole."""
BESIDE = {"annotate", *WHOLE}
"""Commands that write beside it, and say themselves what they do with what is there."""


def _careful(command: str, function: Callable[..., None]) -> Callable[..., None]:
    """A command that sees first whether what it is to write can be written (H401), and replaces nothing that
    it reads (H566). Errors with a code, ours and spaCy's, and those of a config end it with their message;
    all others are raised.
    """

    @wraps(function)
    def run(*arguments: Any, **settings: Any) -> None:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):  # "\u5317" where its encoding has no such letter
                stream.reconfigure(errors="backslashreplace")
        try:
            for name in WRITTEN | ({"dev"} if command == "convert" else set()):
                if isinstance(settings.get(name), Path):
                    _check(command, settings[name], name)
                    _check_apart(command, name, settings)
            _check_pipelines(settings)
            with show_validation_error(settings.get("config_path")), _encoders_kept():
                function(*arguments, **settings)
        except (OSError, ValueError) as error:
            if not str(error).startswith("["):
                raise
            msg.fail(str(error), exits=1)

    return run


@contextmanager
def _encoders_kept() -> Iterator[None]:
    """Let srsly look for its encoders of MessagePack once: it does for every Doc that a DocBin gets or gives,
    up to three times, and each time in the entry points of all packages, for a millisecond.
    """
    registries = [srsly.msgpack_encoders, srsly.msgpack_decoders]
    for registry in registries:
        vars(registry)["get_all"] = cache(registry.get_all)
    try:
        yield
    finally:
        for registry in registries:
            vars(registry).pop("get_all", None)  # gone already where a command ran in another


def _check(command: str, path: Path, name: str) -> None:
    """RAISES (ValueError): H401 if a place cannot be written."""
    from spacy_hocrf.cli.places import check_beside, check_file, check_folder
    from spacy_hocrf.errors import Errors

    if path == Path("-"):
        reason = "it stands for the standard output, but this command writes files"
        raise ValueError(Errors.H401.format(path=path, reason=reason, setting=name))
    if command in BESIDE:
        check_beside(path, name)
    is_part = command == "annotate" and not path.suffix
    if command in ("label", "temper") or name == "into" or is_part:
        check_folder(path, name)
    elif command not in BESIDE:
        check_file(path, name)


def _check_apart(command: str, name: str, settings: Mapping[str, Any]) -> None:
    """RAISES (ValueError): H566 if a file, or a folder that is replaced as a whole, is or has what another
    parameter names.
    """
    from spacy_hocrf.cli.errors import CommandErrors

    path = settings[name]
    if path.is_dir() and command not in WHOLE:  # files are written beside those that are there
        return
    for other, value in settings.items():
        values = value if isinstance(value, list) else [value]
        for each in values if other != name else ():
            is_place = isinstance(each, Path) or (isinstance(each, str) and other in READ)
            if is_place and Path(each).resolve().is_relative_to(path.resolve()):
                known = {"path": path, "one": name, "other": other, "found": each}
                raise ValueError(CommandErrors.H566.format(**known))


def _check_pipelines(settings: Mapping[str, Any]) -> None:
    """RAISES (ValueError): H571 if a folder that is given as a pipeline has none."""
    from spacy_hocrf.cli.errors import CommandErrors

    runs = [each for system in settings.get("systems", ()) for each in system.split(",")]
    model = None if settings.get("grammar") else settings.get("model")  # which then are texts
    for name in filter(None, [model, *runs]):
        has_none = Path(name).is_dir() and not (Path(name) / "meta.json").is_file()
        if has_none and not is_package(str(name)):
            raise ValueError(CommandErrors.H571.format(path=name))


@cache
def _command(name: str) -> Any:
    """A command, imported when it is asked for."""
    place = name.replace("-", "_")
    inside = ".command" if name in FOLDERS else ""
    module = import_module(f"spacy_hocrf.cli.{place}{inside}")
    overriding = name in OVERRIDING
    settings = {"allow_extra_args": overriding, "ignore_unknown_options": overriding}
    alone = Typer(add_completion=False, rich_markup_mode=app.rich_markup_mode)
    function = getattr(module, f"{place}_cli")
    alone.command(name, context_settings=settings)(_careful(name, function))
    return get_command(alone)


class _Group(TyperGroup):
    """The commands, in alphabetical order."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = dict.fromkeys(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _command(cmd_name) if cmd_name in COMMANDS else None


HELP = "Commands for high-order conditional random fields."

hocrf_cli = Typer(name="hocrf", cls=_Group, help=HELP, no_args_is_help=True)
hocrf_cli.callback()(lambda: None)  # it is a group, though no command is registered
app.add_typer(hocrf_cli)
