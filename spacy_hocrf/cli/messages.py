"""How a command fails: with a message, where the fault is not its own."""

from collections.abc import Iterator
from contextlib import contextmanager

from wasabi import msg

__all__ = ["coded_errors"]


@contextmanager
def coded_errors() -> Iterator[None]:
    """Errors with a code, ours and spaCy's, end the command with their message; all others are
    raised.
    """
    try:
        yield
    except (OSError, ValueError) as error:
        if not str(error).startswith("["):
            raise
        msg.fail(str(error), exits=1)
