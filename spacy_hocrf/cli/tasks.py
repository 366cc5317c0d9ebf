"""Texts for a person to annotate or correct, in the formats of annotation tools.

Prodigy reads one JSON object per line, with `spans` by characters and tokens, and keeps other fields; so does
doccano, with `label` as lists of first character, end and label, other fields being metadata. Label
Studio reads a JSON list of tasks with `annotations`, which are corrected, and `predictions`, which are
suggested, for a labelling interface with <Labels name="label" toName="text"> and <Text name="text"
value="$text">.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from srsly import json_dumps

from spacy_hocrf.annotation.best_readings import ScoredSpan
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.cli.files import write_json, write_whole

__all__ = ["FORMATS", "AnnotationTask", "check_format", "ending_of", "write_tasks"]

DIGITS = 4
Places = Sequence[tuple[int, int]]
"""First character of each token and one past its last one."""


class AnnotationTask(NamedTuple):
    """A text to annotate or correct."""

    words: Sequence[str]  # tokens, each with the white space behind it
    annotated: Sequence[ScoredSpan] | None  # None: not annotated yet
    predictions: Sequence[ScoredSpan]  # the model's predictions
    meta: Mapping[str, Any]  # metadata


def write_tasks(path: Path, tasks: Sequence[AnnotationTask], tool: str) -> None:
    """Write texts for a tool of FORMATS: a JSON list for Label Studio, else one object per line.

    RAISES (ValueError): H074 for another tool.
    """
    check_format(tool)
    rows = [FORMATS[tool](task, _places(task.words)) for task in tasks]
    if ending_of(tool) == ".json":
        write_json(path, rows)
    else:
        write_whole(path, "".join(f"{json_dumps(row)}\n" for row in rows))


def check_format(tool: str) -> None:
    """Check the name of a tool. RAISES (ValueError): H074 if it is not in FORMATS."""
    if tool not in FORMATS:
        tools = ", ".join(FORMATS)
        raise ValueError(CommandErrors.H074.format(option="--format", found=tool, expected=tools))


def ending_of(tool: str) -> str:
    """Return the suffix of the file that `write_tasks` writes for a tool."""
    return ".json" if tool == "label-studio" else ".jsonl"


def _places(words: Sequence[str]) -> Places:
    ends = accumulate(map(len, words))
    return [
        (end - len(word), end - len(word) + len(word.rstrip())) for word, end in zip(words, ends)
    ]


def _prodigy(task: AnnotationTask, places: Places) -> dict[str, Any]:
    tokens = [
        {
            "text": word[: end - start],
            "start": start,
            "end": end,
            "id": i,
            "ws": len(word) > end - start,
        }
        for i, (word, (start, end)) in enumerate(zip(task.words, places))
    ]

    def spans(of: Sequence[ScoredSpan]) -> list[dict[str, Any]]:
        return [
            {
                "start": places[span.start][0],
                "end": places[span.end - 1][1],
                "token_start": span.start,
                "token_end": span.end - 1,
                "label": span.label,
                "score": round(span.probability, DIGITS),
            }
            for span in of
        ]

    begin_with = task.predictions if task.annotated is None else task.annotated
    row = {"text": "".join(task.words), "tokens": tokens, "spans": spans(begin_with)}
    if task.annotated is not None:
        row["model_spans"] = spans(task.predictions)
    lists = {name: value for name, value in task.meta.items() if isinstance(value, list)}
    others = {name: value for name, value in task.meta.items() if name not in lists}
    return {**row, **lists, "meta": others}  # Prodigy shows `meta` on its card


def _doccano(task: AnnotationTask, places: Places) -> dict[str, Any]:
    def spans(of: Sequence[ScoredSpan]) -> list[list[Any]]:
        return [[places[s.start][0], places[s.end - 1][1], s.label] for s in of]

    begin_with = task.predictions if task.annotated is None else task.annotated
    row = {"text": "".join(task.words), "label": spans(begin_with)}
    if task.annotated is not None:
        row["model"] = spans(task.predictions)
    return {**row, **task.meta}


def _label_studio(task: AnnotationTask, places: Places) -> dict[str, Any]:
    text = "".join(task.words)

    def result(of: Sequence[ScoredSpan]) -> list[dict[str, Any]]:
        return [
            {
                "from_name": "label",
                "to_name": "text",
                "type": "labels",
                "score": round(span.probability, DIGITS),
                "value": {
                    "start": start,
                    "end": end,
                    "text": text[start:end],
                    "labels": [span.label],
                },
            }
            for span in of
            for start, end in [(places[span.start][0], places[span.end - 1][1])]
        ]

    score = min((span.probability for span in task.predictions), default=1.0)
    prediction = {
        "model_version": "spacy-hocrf",
        "score": round(score, DIGITS),
        "result": result(task.predictions),
    }
    row = {"data": {"text": text, **task.meta}, "predictions": [prediction]}
    if task.annotated is not None:
        row["annotations"] = [{"result": result(task.annotated)}]
    return row


FORMATS: Mapping[str, Callable[[AnnotationTask, Places], dict[str, Any]]] = {
    "prodigy": _prodigy,
    "doccano": _doccano,
    "label-studio": _label_studio,
}
