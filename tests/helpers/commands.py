"""Commands of `python -m spacy hocrf`, in this process."""

from typer.testing import CliRunner

from spacy_hocrf.cli import hocrf_cli


def run(*arguments, code=0):
    """What a command prints. code (int): the status that it is to end with, by itself."""
    done = CliRunner().invoke(
        hocrf_cli, [*map(str, arguments)], catch_exceptions=False, terminal_width=200
    )
    assert done.exit_code == code, done.output
    return done.output
