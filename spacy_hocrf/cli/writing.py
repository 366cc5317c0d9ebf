r"""What commands write: a page where the name says so, and a config as a file that `spacy train` reads as it
was meant.

spaCy reads a file twice: "$$" of the file is "$$" then, where `Config.to_str` means "$" by it. The JSON
"\u0024" is a dollar sign either way.
"""

from pathlib import Path

from thinc.api import Config

from spacy_hocrf.cli.errors import CommandErrors

__all__ = ["check_data", "check_page", "check_path", "is_page", "write_config"]


def is_page(path: Path) -> bool:
    """Does the name of a file end as that of a page does?"""
    return path.suffix.lower() in (".html", ".htm")


def check_page(option: str, path: Path | None) -> None:
    """RAISES (ValueError): H074 for the name of anything but a page."""
    if path is not None and not is_page(path):
        expected = "a page, whose name ends in .html"
        raise ValueError(CommandErrors.H074.format(option=option, found=path, expected=expected))


def check_data(option: str, path: Path | None) -> None:
    """RAISES (ValueError): H074 for the name of a page where data are written."""
    if path is not None and is_page(path):
        expected = "a file for JSON: this command draws no page"
        raise ValueError(CommandErrors.H074.format(option=option, found=path, expected=expected))


def write_config(config: Config, path: Path, header: str = "") -> None:
    """Write a config. header (str): comment before it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(header + config.to_str().replace("$$", r"\u0024"), encoding="utf8")


def check_path(path: Path | str | None) -> None:
    """RAISES (ValueError): H269 for a path that a config cannot hold."""
    if "${" in str(path):
        raise ValueError(CommandErrors.H269.format(path=path))
