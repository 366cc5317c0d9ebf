"""The results as a table in Markdown, with the machine and what was checked, and plots."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import plots
import typer
from results import three_digits
from wasabi import MarkdownRenderer, msg

sys.path.append(str(Path(__file__).parents[2]))
from common import plot
from common.report import table

HEADER = ("#", "what", "ours", "peer", "measured", "must", "aim", "")
WHEN = "measured"
BY_PROCESS = ("instruction set", "load average")  # what may differ from bar to bar

CAPTIONS = {  # of the plots; the one without a name is that of the table
    "F1 by speed of prediction and by time of training": "systems.png",
    "Time of an evaluation by order": "",
}
MORE_PLOTS = {"systems.png": plots.draw_systems}

HOW = """\
CPU time of one thread; the sides take turns, and the least of several rounds counts. \
An evaluation is one of the objective and its
gradient, the optimiser's own work included; CRFsuite's is of order 1 throughout, with c2 = 0.5. \
"Measured" is ours over the peer's
for times and memory, and our speed over the peer's where the bar has ≥.

Bars 1 to 11 are about engines: few features, the same on both sides, and no scores. \
Bars 12 to 16 are
`nlp.add_pipe("hocrf")` as it is, all its features and scores; the order is given in bar 16. \
CRFsuite's features are made by a loop in
Python, and it gives no scores. F1 in bar 16 is that of the last tenth of the training part, which \
nobody has learnt from. The processes of
bar 15 and the trainings of bar 16 ran once."""


def main(
    work: Annotated[Path, typer.Argument(help="Folder with the results", exists=True)] = Path(
        "metrics"
    ),
    output: Annotated[Path, typer.Argument(help="Markdown file; the plots go beside it")] = Path(
        "results.md"
    ),
) -> None:
    """Write the table and the plots."""
    results = read_results(work)
    if not results:
        msg.fail(f"There is no result in {work}: measure something first", exits=1)
    plot.publish(results, output, render, plots.draw)
    for name, draw in MORE_PLOTS.items():
        plot.save(output.with_name(name), draw, results)
    failed = [result["bar"] for result in results if "error" in result]
    if failed:
        msg.fail(f"Bars that failed: {', '.join(failed)}", exits=1)


def read_results(work: Path) -> list[dict]:
    """One for each bar and instruction set, by number."""
    results = [
        json.loads(path.read_text(encoding="utf8")) for path in sorted(work.glob("bar-*.json"))
    ]
    return sorted(results, key=lambda result: int(result["bar"]))


def render(results: Sequence[dict], plot_name: str) -> str:
    """The whole document."""
    markdown = MarkdownRenderer()
    markdown.add(markdown.title(1, "Benchmark"))
    if any(result["small"] for result in results):
        markdown.add(
            "**Small setting: 36 references stand in for every corpus, "
            "and the times mean nothing.**"
        )
    rows = [row for result in results for row in table_rows(result)]
    markdown.add(table(rows, HEADER, "rlrrrrrl"))
    markdown.add(HOW)
    for caption, name in CAPTIONS.items():
        markdown.add(plot.image(caption, (name or plot_name) if plot_name else ""))
    markdown.add(markdown.title(2, "Machine"))
    markdown.add(table(machine_rows(results), ("", ""), "ll"))
    markdown.add(markdown.title(2, "Checked before anything was timed"))
    checks = [
        f"{result['bar']}: {check}" for result in results for check in result.get("checks", ())
    ]
    markdown.add(markdown.list(checks))
    return markdown.text + "\n"


def table_rows(result: dict) -> list[tuple[str, ...]]:
    """A bar's lines of the table."""
    if "error" in result:
        return [(result["bar"], f"failed: {result['error']}", *[""] * 6)]
    return [
        (
            result["bar"],
            row["what"],
            row["ours"],
            row["peer"],
            row["note"] or number(row["value"], row["unit"]),
            limit(row["must"], row),
            limit(row["aim"], row),
            verdict(row),
        )
        for row in result["rows"]
    ]


def number(value: float | None, unit: str) -> str:
    """Three digits and the unit; nothing for None."""
    return "" if value is None else f"{three_digits(value)} {unit}"


def limit(value: float | None, row: Mapping) -> str:
    """What a value must be."""
    if value is None:
        return ""
    written = f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    return f"{'≥' if row['at_least'] else '≤'} {written} {row['unit']}"


def verdict(row: Mapping) -> str:
    """Is it as it must be, or even as we aim? Nothing where there is no bar or no measurement."""
    if row["value"] is None or row["must"] is None:
        return ""
    if row["aim"] is not None and reaches(row, row["aim"]):
        return "aim"
    return "must" if reaches(row, row["must"]) else "**missed**"


def reaches(row: Mapping, bar: float) -> bool:
    """Is the value on the right side of a bar?"""
    return row["value"] >= bar if row["at_least"] else row["value"] <= bar


def machine_rows(results: Sequence[dict]) -> list[tuple[str, str]]:
    """What the bars were measured on, and when; several values, with their bars, where they differ."""
    measured = [result for result in results if "machine" in result]
    rows = []
    for name in measured[0]["machine"] if measured else ():
        bars: dict[str, list[int]] = {}
        for result in measured:
            bars.setdefault(result["machine"][name], []).append(int(result["bar"]))
        if len(bars) > 1 and name not in BY_PROCESS:
            if name != WHEN:
                msg.warn(f"The results are not of one machine: {name} is {' and '.join(bars)}")
            values = [f"{value} ({stretches(numbers)})" for value, numbers in bars.items()]
        else:
            values = sorted(bars)
        rows.append((name, ", ".join(values)))
    return rows


def stretches(numbers: Sequence[int]) -> str:
    """Bars, with the first and last of neighbouring ones: "bars 1 to 3, 5"."""
    groups: list[list[int]] = []
    for number in sorted(set(numbers)):
        if groups and groups[-1][-1] == number - 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    runs = (f"{run[0]} to {run[-1]}" if len(run) > 1 else f"{run[0]}" for run in groups)
    return f"{'bar' if len(groups[0]) == len(groups) == 1 else 'bars'} {', '.join(runs)}"


if __name__ == "__main__":
    # the table has signs that not every terminal's code page has
    sys.stdout.reconfigure(encoding="utf8")
    typer.run(main)
