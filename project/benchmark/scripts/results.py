"""What measuring a bar comes to: lines of the table, points of the plot, and what was checked; and
how numbers are written.
"""

from dataclasses import dataclass, field


@dataclass
class Row:
    """A line of the table."""

    what: str
    ours: str
    peer: str
    value: float | None = None  # what is judged; None for nothing, or not measured
    unit: str = "×"
    must: float | None = None
    aim: float | None = None
    at_least: bool = False  # must and aim are the least that will do, rather than the most
    note: str = ""


@dataclass
class Point:
    """A point of the plot."""

    corpus: str
    model: str
    order: int
    seconds: float


@dataclass
class System:
    """A trained system: a point of the plot of F1 beside speed and beside training."""

    name: str
    variant: str  # its order, or how long it was trained
    f1: float  # percent
    tokens_per_second: float
    training: float  # CPU seconds


@dataclass
class Outcome:
    """What a bar has come to."""

    rows: list[Row]
    points: list[Point] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    systems: list[System] = field(default_factory=list)


def not_measured(
    what: str, why: str, must: float | None, aim: float | None = None, at_least: bool = False
) -> Row:
    """A line that says why there is nothing to judge."""
    return Row(what, "", "", must=must, aim=aim, at_least=at_least, note=f"not measured: {why}")


def milliseconds(seconds: float) -> str:
    """Seconds as milliseconds."""
    return f"{seconds * 1e3:,.{0 if seconds > 0.1 else 2}f} ms"


def microseconds(seconds: float) -> str:
    """Seconds as microseconds."""
    return f"{seconds * 1e6:,.{0 if seconds > 1e-4 else 1}f} µs"


def megabytes(size: float) -> str:
    """Bytes as MB."""
    return f"{size / 1e6:,.0f} MB"


def speed(seconds: float) -> str:
    """Seconds a token as tokens a second."""
    return f"{1 / seconds / 1e3:,.0f}k tokens/s"


def three_digits(value: float) -> str:
    """Three digits, or all of those before the point."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:#.3g}".rstrip(".")
