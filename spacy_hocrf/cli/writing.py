r"""A config as a file that `spacy train` reads as it was meant.

spaCy reads a file twice: "$$" of the file is "$$" then, where `Config.to_str` means "$" by it. The JSON
"\u0024" is a dollar sign either way.
"""

from pathlib import Path

from thinc.api import Config

from spacy_hocrf.cli.errors import CommandErrors

__all__ = ["check_path", "write_config"]


def write_config(config: Config, path: Path, header: str = "") -> None:
    """Write a config. header (str): comment before it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(header + config.to_str().replace("$$", r"\u0024"), encoding="utf8")


def check_path(path: Path | str | None) -> None:
    """RAISES (ValueError): H269 for a path that a config cannot hold."""
    if "${" in str(path):
        raise ValueError(CommandErrors.H269.format(path=path))
