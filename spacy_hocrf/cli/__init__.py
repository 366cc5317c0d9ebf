"""`python -m spacy hocrf …`: the commands.

spaCy's command line loads the entry points of the group `spacy_cli` (setup.cfg) before every command
of its own; importing this package adds the group `hocrf` to its app, and nothing else. A command is
imported when it is asked for, so that `spacy train` does not pay for it.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from spacy.cli._util import app
from typer import Typer
from typer.core import TyperGroup
from typer.main import get_command

__all__ = ["hocrf_cli"]

PLACES = {
    "annotate": "annotate.command",
    "auto": "auto.command",
    "calibrate": "calibrating",
    "compare": "compare",
    "config": "starting",
    "convert": "convert.command",
    "cross-fit": "cross_fit",
    "debug": "debugging",
    "doubt": "doubting",
    "inspect": "inspecting",
    "plan": "plan.command",
    "show": "showing",
    "temper": "tempering",
    "templates": "templating",
    "tune": "tune",
}
"""Modules of the commands: that of `cross-fit` has `cross_fit_cli`."""

OVERRIDING = {"cross-fit", "debug", "doubt", "plan", "tune"}
"""Commands that take settings of a config as well: `--training.seed 1`."""


class _Commands(Mapping[str, Any]):
    """By name."""

    def __init__(self) -> None:
        self._imported = dict[str, Any]()

    def __getitem__(self, name: str) -> Any:
        if name not in self._imported:
            module = import_module(f"spacy_hocrf.cli.{PLACES[name]}")
            overriding = name in OVERRIDING
            settings = {"allow_extra_args": overriding, "ignore_unknown_options": overriding}
            alone = Typer(add_completion=False, rich_markup_mode=app.rich_markup_mode)
            function = getattr(module, f"{name.replace('-', '_')}_cli")
            alone.command(name, context_settings=settings)(function)
            self._imported[name] = get_command(alone)
        return self._imported[name]

    def __iter__(self) -> Iterator[str]:
        return iter(PLACES)

    def __len__(self) -> int:
        return len(PLACES)


class _Group(TyperGroup):
    """The commands, in alphabetical order."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.commands)


HELP = "Commands for high-order conditional random fields."

hocrf_cli = Typer(name="hocrf", cls=_Group, help=HELP, no_args_is_help=True)
hocrf_cli.callback()(lambda: None)  # it is a group, though no command is registered
app.add_typer(hocrf_cli)
