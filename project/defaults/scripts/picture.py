"""The picture of the first page: F1 by speed, as the table there says."""

import re
from pathlib import Path
from typing import Annotated

import typer

ROOT = Path(__file__).parents[3]
SCHEMES = {
    "": ("#1f2328", "#1f5fa8", "#d0661b", "#555555"),
    "-dark": ("#e6edf3", "#6cb0ff", "#f0924c", "#b0b6bd"),
}
ROW = re.compile(
    r"^\| ([^|]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| (\d+)k tokens/s \|", re.MULTILINE
)
NAMES = {"spacy-hocrf": "spacy-hocrf", "CRFsuite": "CRFsuite", "spaCy": "spaCy's ner"}
TEXTS = ("100 texts", "400", "all")


def main(
    folder: Annotated[Path, typer.Argument(help="For systems.png and systems-dark.png")],
) -> None:
    """Draw it for a light page and for a dark one."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = ROW.findall((ROOT / "README.md").read_text(encoding="utf8"))
    assert len(rows) == len(NAMES), rows
    for suffix, (ink, *colours) in SCHEMES.items():
        figure, axes = plt.subplots(figsize=(4.8, 3.4), layout="constrained")
        for (name, *numbers), colour, marker in zip(
            rows, (colours[0], colours[2], colours[1]), "oDs"
        ):
            *scores, speed = map(float, numbers)
            axes.plot(
                [1000 * speed] * 3, scores, marker=marker, color=colour, markersize=8, linewidth=2
            )
            shown = next(shown for begin, shown in NAMES.items() if name.startswith(begin))
            near = {
                "xytext": (0, 9),
                "textcoords": "offset points",
                "color": colour,
                "ha": "center",
            }
            axes.annotate(shown, (1000 * speed, scores[-1]), fontsize=12, fontweight="bold", **near)
            for score, texts in zip(scores, TEXTS):
                side = {**near, "xytext": (-10, -4), "ha": "right"}
                axes.annotate(f"{score:.1f}", (1000 * speed, score), fontsize=11, **side)
                if name.startswith("spacy-hocrf"):
                    side = {**near, "xytext": (10, -4), "ha": "left"}
                    axes.annotate(texts, (1000 * speed, score), fontsize=11, **side)
        axes.set(xscale="log", xlim=(5e3, 3e6), ylim=(38, 73))
        axes.set_xticks([1e4, 1e5, 1e6], ["10,000", "100,000", "1,000,000"])
        axes.set_xlabel("tokens a second, one thread", color=ink, fontsize=12)
        axes.set_ylabel("F1, average of twelve tasks", color=ink, fontsize=12)
        axes.tick_params(colors=ink, labelsize=11)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(ink)
        figure.savefig(folder / f"systems{suffix}.png", dpi=160, transparent=True)


if __name__ == "__main__":
    typer.run(main)
