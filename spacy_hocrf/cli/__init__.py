"""`python -m spacy hocrf …`: the commands.

spaCy's command line loads the entry points of the group `spacy_cli` (setup.cfg) before every command
of its own; importing this package only adds the group `hocrf` to its app. A command's module is imported
when the command is called, so that `spacy train` does not pay for it.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, wraps
from importlib import import_module
from inspect import signature
from io import TextIOWrapper
from os.path import ismount
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
"""Each command lives in the module of its name: `cross-fit` is `cross_fit_cli` in `cross_fit`."""
FOLDERS = {"annotate", "auto", "convert", "label"}
"""Commands that are packages: the function is in their module `command`."""

OVERRIDING = {"ablate", "cross-fit", "debug", "doubt"}
"""Commands that also take overrides of config settings: `--training.seed 1`."""


WRITTEN = {"output", "page", "weights", "review", "losses", "into"}
"""Parameters that name output files or folders, if their value is a path."""
READ = {"model", "systems", "vectors"}
"""Parameters that name inputs even if they are not paths (a package, for example)."""
TEXTS = {"dev", "gold", "texts", "train", "unlabelled"}
"""Parameters that name files of texts, which are read more than once."""
WHOLE = {"auto", "extend"}
"""Commands that replace the whole output folder."""
BESIDE = {"annotate", *WHOLE}
"""Commands that write next to their output first, and handle an existing output themselves."""

NEEDS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "calibrate": {"confidence": ("recall", "accept_"), "into": ("accept_",), "by": ("accept_",)},
    "inspect": {"share": ("grammar",), "spans_key": ("grammar",)},
}
"""Parameters that have no effect without one of others. They are None where they are not given."""


def _careful(command: str, function: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command: before it runs, check that its outputs can be written (H401) and replace none of its
    inputs (H566). Errors with a code, ours or spaCy's, and config errors end it with their message; all
    others are raised.
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
            _check_inputs(function, command, settings)
            _check_needs(command, settings)
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
    """Cache srsly's MessagePack encoders. Otherwise it searches the entry points of all packages, which
    takes a millisecond, up to three times for every Doc that a DocBin reads or writes.
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
    """Check an output path. RAISES (ValueError): H401 if it cannot be written."""
    from spacy_hocrf.cli.places import check_beside, check_file, check_folder
    from spacy_hocrf.errors import Errors

    reason = ""
    if path == Path("-"):
        reason = "it stands for the standard output, but this command writes files"
    elif command in BESIDE and not path.name:  # "." or "/"
        reason = "it is a folder that has other uses"
    elif command in WHOLE and ismount(path):
        reason = "a mounted volume cannot be replaced, but a folder in it can"
    if reason:
        raise ValueError(Errors.H401.format(path=path, reason=reason, setting=name))
    if command in BESIDE:
        check_beside(path, name)
    is_part = command == "annotate" and not path.suffix
    if command in ("label", "temper") or name == "into" or is_part:
        check_folder(path, name)
    elif command not in BESIDE:
        check_file(path, name)


def _check_apart(command: str, name: str, settings: Mapping[str, Any]) -> None:
    """Check that an output does not overwrite another argument.

    RAISES (ValueError): H566 if the output file, or the folder that is replaced, is or contains a path
        that another parameter names, H585 if annotate would read it as texts when it continues.
    """
    from spacy_hocrf.cli.errors import CommandErrors

    path = settings[name]
    if command == "annotate" and (folder := settings["texts"]).is_dir():
        if path.resolve().is_relative_to(folder.resolve()):
            raise ValueError(CommandErrors.H585.format(path=path, setting=name, folder=folder))
    if path.is_dir() and command not in WHOLE:  # files are added to those already there
        return
    for other, value in settings.items():
        values = value if isinstance(value, list) else [value]
        for each in values if other != name else ():
            is_place = isinstance(each, Path) or (isinstance(each, str) and other in READ)
            if is_place and Path(each).resolve().is_relative_to(path.resolve()):
                known = {"path": path, "one": name, "other": other, "found": each}
                raise ValueError(CommandErrors.H566.format(**known))


def _check_inputs(function: Callable[..., None], command: str, settings: Mapping[str, Any]) -> None:
    """RAISES (ValueError): H578 for a pipe in place of texts, H579 for an empty string, H584 for bytes that
    are not UTF-8, which Python reads as lone surrogates.
    """
    from spacy_hocrf.cli.errors import CommandErrors
    from spacy_hocrf.features.tokens import is_unicode

    for name, value in settings.items():
        setting = name.rstrip("_").replace("_", "-")
        is_read = name in TEXTS or (name, command) == ("path", "convert")
        if is_read and value is not None and Path(value).is_fifo():
            raise ValueError(CommandErrors.H578.format(path=value, setting=setting))
        if value == "" and signature(function).parameters[name].default != "":
            raise ValueError(CommandErrors.H579.format(setting=setting))
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, str) and not (name in READ or is_unicode(each)):
                raise ValueError(CommandErrors.H584.format(setting=setting, found=each))


def _check_needs(command: str, settings: Mapping[str, Any]) -> None:
    """RAISES (ValueError): H576 for an option that would have no effect, as another is not given."""
    from spacy_hocrf.cli.errors import CommandErrors

    options = {name: f"--{name.rstrip('_').replace('_', '-')}" for name in settings}
    for name, others in NEEDS.get(command, {}).items():
        if settings[name] is not None and not any(settings[other] for other in others):
            needed = " or ".join(options[other] for other in others)
            raise ValueError(CommandErrors.H576.format(option=options[name], needed=needed))


def _check_pipelines(settings: Mapping[str, Any]) -> None:
    """Check pipeline arguments. RAISES (ValueError): H571 if a folder given as a pipeline contains none."""
    from spacy_hocrf.cli.errors import CommandErrors

    runs = [each for system in settings.get("systems", ()) for each in system.split(",")]
    model = None if settings.get("grammar") else settings.get("model")  # else texts
    for name in filter(None, [model, *runs]):
        has_none = Path(name).is_dir() and not (Path(name) / "meta.json").is_file()
        if has_none and not is_package(str(name)):
            raise ValueError(CommandErrors.H571.format(path=name))


@cache
def _command(name: str) -> Any:
    """Import a command and return it."""
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
