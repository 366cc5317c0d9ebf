"""What a component has learnt, as one HTML file that needs no other."""

from collections.abc import Iterable, Sequence
from html import escape

from spacy_hocrf.cli.inspection import Inspection, Weighted
from spacy_hocrf.pipeline.pages import plain_page, tag_of

__all__ = ["inspection_page"]

FOR, AGAINST = 260, 25
"""Hues behind the weights of a matrix."""
EXPLAINED = (
    "Numbers are weights, in nats: what an observation adds to the score of a label. Of all that is "
    "observed, the sum counts, so what says the same as others has a small weight. In brackets, how "
    "often it was seen in training. NORM[0] is a word, NORM[-1] the one before it; start: and end: look at "
    "the first and at the last word of a span only."
)


def inspection_page(found: Inspection, longest: int) -> str:
    """The page. What is from the user's texts and labels is escaped.

    longest (int): label patterns that are listed.
    """
    title = f"What {escape(found.component)} has learnt"
    longer = [each for each in found.patterns if each.pattern.count(" ") != 1]
    parts = [
        f"<h1>{title}</h1>",
        f'<p class="soft">{found.features:,} weights of observations, order {found.order}</p>',
        f"<p>{EXPLAINED}</p>",
        _section("What follows what: labels in rows before those in columns", _matrix(found)),
        *(
            _section(
                f"What speaks for {escape(label)}, and what against it",
                _weights(features, found.lang),
            )
            for label, features in found.by_label.items()
        ),
        _section("Other label patterns, oldest label first", _weights(longer[:longest], "en")),
        _section("What it looks at", _blocks(found)),
    ]
    return plain_page(title, "\n".join(parts), found.lang)


def _section(title: str, body: str) -> str:
    """Nothing without a body."""
    if not body:
        return ""
    return f'<section><h2 class="apart">{title}</h2><div class="scroll">{body}</div></section>'


def _blocks(found: Inspection) -> str:
    most = max([block.total for block in found.blocks], default=0.0)
    rows = [
        f'<tr><th scope="row"><code>{escape(block.name)}</code></th>{_bar(block.total, most)}'
        f"<td>{block.total:.1f}</td><td>{block.largest:.2f}</td><td>{block.features:,}</td></tr>"
        for block in found.blocks
    ]
    header = ("", "", "sum of |w|", "largest |w|", "weights")
    return _table("weights", header, rows) if rows else ""


def _matrix(found: Inspection) -> str:
    """Weights of pairs of labels."""
    pairs = {each.pattern: each.weight for each in found.patterns if each.pattern.count(" ") == 1}
    if not pairs:
        return ""
    most = max(map(abs, pairs.values())) or 1.0
    rows = []
    for before in found.labels:
        cells = [_cell(pairs.get(f"{before} {label}"), most) for label in found.labels]
        rows.append(f'<tr><th scope="row">{escape(before)}</th>{"".join(cells)}</tr>')
    return _table("heat", ("", *found.labels), rows)


def _cell(weight: float | None, most: float) -> str:
    if weight is None:
        return "<td></td>"
    hue = AGAINST if weight < 0 else FOR
    return f'<td class="cell" style="--hue:{hue};--p:{abs(weight) / most:.2f}">{weight:+.2f}</td>'


def _weights(features: Sequence[Weighted], lang: str) -> str:
    words = f'lang="{escape(tag_of(lang))}" dir="auto"'
    most = max([abs(each.weight) for each in features], default=0.0)
    rows = [
        f'<tr><td class="number">{each.weight:+.2f}</td>{_bar(each.weight, most)}'
        f"<td><code {words}>{escape(each.feature)}</code> [{each.count:,}]</td></tr>"
        for each in features
    ]
    return _table("bars", (), rows) if rows else ""


def _bar(value: float, most: float) -> str:
    kind = ' class="against"' if value < 0 else ""
    width = 100 * abs(value) / most if most else 0.0
    return f'<td class="bar" aria-hidden="true"><span{kind} style="width:{width:.1f}%"></span></td>'


def _table(kind: str, header: Sequence[str], rows: Iterable[str]) -> str:
    cells = "".join(
        f'<th scope="col">{escape(cell)}</th>' if cell else "<td></td>" for cell in header
    )
    head = f"<thead><tr>{cells}</tr></thead>" if header else ""
    return f'<table class="{kind}">{head}<tbody>{"".join(rows)}</tbody></table>'
