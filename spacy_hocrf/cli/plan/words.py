"""Numbers as people read them."""

__all__ = ["gigabytes", "number", "seconds"]

LARGE = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))
BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"))
TIMES = ((2 * 86400, 86400, "days"), (2 * 3600, 3600, "h"), (120, 60, "min"))


def number(value: float) -> str:
    """Of things."""
    for size, name in LARGE:
        if value >= size:
            return f"{value / size:.3g} {name}"
    return f"{value:,.0f}"


def gigabytes(value: float) -> str:
    """Of bytes."""
    for size, name in BYTES:
        if value >= size:
            return (
                f"{value / size:.3g} {name}"
                if value < 999.5 * size
                else f"{value / size:,.0f} {name}"
            )
    return f"{value / 1e6:.1f} MB"


def seconds(value: float) -> str:
    """Of time."""
    for least, size, name in TIMES:
        if value >= least:
            return f"{value / size:.3g} {name}"
    return f"{value:.3g} s"
