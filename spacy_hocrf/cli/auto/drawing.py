"""Drawings of the report as SVG: the learning curve, and intervals of F1; and the curve as numbers."""

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from spacy_hocrf.cli.auto.estimates import QUANTILE, Curve, Score

__all__ = ["curve_numbers", "curve_svg", "interval_svg"]

CURVE_FILE = "curve.json"
"""Where the learning curve is, beside the model."""
WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 48, 16, 16, 40
"""Margins around the learning curve."""
STEPS = 60
"""Of a curved line."""
Scale = Callable[[float], float]
BAR, THICK = 160, 14
"""Size of an interval."""


def curve_svg(curve: Curve) -> str:
    """F1 by number of texts: measured with intervals, fitted, and what twice the texts would give."""
    doubled = 2 * curve.now
    ends = [(f - QUANTILE * e, f + QUANTILE * e) for f, e in zip(curve.f, curve.errors)]
    values = [curve.doubled.low, curve.doubled.high, *(value for pair in ends for value in pair)]
    low, high = max(0.0, min(values) - 0.02), min(1.0, max(values) + 0.02)

    def x(texts: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * texts / (1.08 * doubled)

    def y(f: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - min(max(f, low), high)) / (high - low)

    parts = [_grid(x, y, low, high, sorted({*curve.texts, curve.now, doubled}))]
    for first, last, kind in ((curve.texts[0], curve.now, "line"), (curve.now, doubled, "more")):
        places = [first + (last - first) * i / STEPS for i in range(STEPS + 1)]
        points = " ".join(f"{x(n):.1f},{y(curve.at(n)):.1f}" for n in places)
        parts.append(f'<polyline class="{kind}" points="{points}"/>')
    for n, f, (bottom, top) in zip(curve.texts, curve.f, ends):
        title = f"{n} texts: {100 * f:.1f} ({100 * bottom:.1f} to {100 * top:.1f})"
        parts.append(_point(x(n), y(f), y(bottom), y(top), "measured", title))
    bottom, expected, top = curve.doubled.low, curve.at(doubled), curve.doubled.high
    title = f"{doubled} texts: {100 * expected:.1f} ({100 * bottom:.1f} to {100 * top:.1f})"
    parts.append(_point(x(doubled), y(expected), y(bottom), y(top), "expected", title))
    body = "".join(parts)
    return f'<svg class="curve" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{body}</svg>'


def curve_numbers(curve: Curve) -> dict[str, Any]:
    """The curve as `hocrf show` draws it: `points` with `texts`, `f`, `low` and `high`, the last one with
    twice the texts; a `line` of texts and F1; and the texts there are `now`.
    """
    doubled = 2 * curve.now
    low = [f - QUANTILE * e for f, e in zip(curve.f, curve.errors)]
    high = [f + QUANTILE * e for f, e in zip(curve.f, curve.errors)]
    rows = [*zip(curve.texts, curve.f, low, high)]
    rows.append((doubled, curve.at(doubled), curve.doubled.low, curve.doubled.high))
    first, names = curve.texts[0], ("texts", "f", "low", "high")
    places = [first + (doubled - first) * i / STEPS for i in range(STEPS + 1)]
    return {
        "points": [dict(zip(names, row)) for row in rows],
        "line": [[n, curve.at(n)] for n in sorted({*places, float(curve.now)})],
        "now": curve.now,
    }


def interval_svg(score: Score) -> str:
    """F1 and its interval on a bar from 0 to 100."""
    low, f, high = (BAR * value for value in (score.interval.low, score.f, score.interval.high))
    return (
        f'<svg class="bar" width="{BAR}" height="{THICK}" viewBox="0 0 {BAR} {THICK}">'
        f'<rect class="scale" width="{BAR}" height="{THICK}" rx="3"/>'
        f'<rect class="range" x="{low:.1f}" width="{max(1.0, high - low):.1f}" height="{THICK}" rx="3"/>'
        f'<rect class="f" x="{max(0.0, f - 1.5):.1f}" width="3" height="{THICK}"/></svg>'
    )


def _grid(x: Scale, y: Scale, low: float, high: float, texts: Sequence[int]) -> str:
    parts = []
    step = 0.05 if high - low < 0.4 else 0.1
    value = step * -(-low // step)
    while value <= high:
        level = f"{y(value):.1f}"
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{level}" y2="{level}"/>'
        )
        parts.append(f'<text class="y" x="{LEFT - 8}" y="{level}">{100 * value:.0f}</text>')
        value += step
    base = HEIGHT - BOTTOM
    for n in texts:
        parts.append(f'<text class="x" x="{x(n):.1f}" y="{base + 16}">{n}</text>')
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{base}" y2="{base}"/>')
    parts.append(f'<text class="x" x="{WIDTH / 2}" y="{HEIGHT - 4}">texts to learn from</text>')
    return "".join(parts)


def _point(x: float, y: float, bottom: float, top: float, kind: str, title: str) -> str:
    line = f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{bottom:.1f}" y2="{top:.1f}"/>'
    dot = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'
    return f'<g class="{kind}"><title>{escape(title)}</title>{line}{dot}</g>'
