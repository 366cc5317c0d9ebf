"""Training texts in which a part of the spans is marked, and what is learnt from them in four ways.

Of the spans a share is kept, at random, or by name: all spans of a wording or none, and frequent wordings
rather than others, as a list of names would mark them. What is not marked is taken for outside (`outside`),
for unknown (`unknown`), or for unknown with an expected share of tokens in spans: that of the complete
annotation (`ratio`), or 0.7 or 1.4 times that. Two have complete annotation: `full` that of all texts, and
`few` that of the same share of the texts. A training is a line of JSON.
"""

import json
import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Annotated, Any

import spacy
import typer

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from readers import Text
from systems import example_of
from tasks import load, sample

sys.path.append(str(Path(__file__).parents[2]))
from common.columns import Spans
from common.training import count_spans, learn

TASKS = ("tweets", "conll04", "gum")
BY = ("random", "name")
SYSTEMS: Mapping[str, float | None] = {
    "few": None,
    "outside": None,
    "unknown": 0.0,
    "ratio": 1.0,
    "0.7 ratio": 0.7,
    "1.4 ratio": 1.4,
}
"""Times the share of the complete annotation; 0 for no ratio, None for a corpus that seems to be complete."""


def main(
    output: Annotated[Path, typer.Argument(help="JSONL; what is there is kept")] = Path(
        "metrics/results.jsonl"
    ),
    tasks: Annotated[str, typer.Option(help="Those of project/defaults")] = ",".join(TASKS),
    part: Annotated[str, typer.Option(help="dev or test")] = "test",
    shares: Annotated[str, typer.Option(help="Of the spans, that are kept")] = "0.1,0.2,0.5",
    systems: Annotated[str, typer.Option(help="Beside all spans")] = ",".join(SYSTEMS),
    seeds: Annotated[int, typer.Option(help="Draws of the spans that are kept")] = 1,
) -> None:
    """Train and score each system on each draw."""
    output.parent.mkdir(exist_ok=True)
    lines = output.read_text(encoding="utf8").splitlines() if output.exists() else []
    done = {tuple(json.loads(line)["of"]) for line in lines}
    with output.open("a", encoding="utf8") as file:
        for task in tasks.split(","):
            parts = load(task)
            train, held = parts["train"], parts[part]
            ratio = share_in_spans(train)
            draws = [("full", "", 1.0, 0)]
            draws += [
                (system, by, share, seed)
                for seed in range(seeds)
                for by in BY
                for share in map(float, shares.split(","))
                for system in systems.split(",")
            ]
            for system, by, share, seed in draws:
                of = (task, part, system, by, share, seed)
                if of in done or (system == "few" and by != BY[0]):
                    continue
                if system in ("full", "few"):
                    texts = sample(train, round(share * len(train)), f"{task} {seed}")
                else:
                    texts = keep(train, share, by, f"{task} {seed}")
                counts, seconds = score(texts, held, config_of(SYSTEMS.get(system), ratio))
                row = {"of": of, "counts": counts, "seconds": round(seconds, 1), "ratio": ratio}
                print(json.dumps(row), file=file, flush=True)
                print(*of, f"F1 {200 * counts[0] / max(1, counts[1] + counts[2]):.1f}", flush=True)


def config_of(times: float | None, ratio: float) -> dict[str, Any]:
    """Settings of the component.

    times (Optional[float]): a value of SYSTEMS. ratio (float): share of the complete annotation.
    """
    if times is None:
        return {}
    trainer = {"ratio": round(times * ratio, 3)} if times else {"ratio_weight": 0.0, "ratio": 0.99}
    return {"positives_only": True, "trainer": trainer}


def score(
    train: Sequence[Text], held: Sequence[Text], config: Mapping[str, Any]
) -> tuple[tuple[int, int, int], float]:
    """Spans of held-out texts that are right, found and annotated; and seconds of CPU time of training."""
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf", config=dict(config))
    start = process_time()
    learn(nlp, [example_of(nlp, text) for text in train])
    seconds = process_time() - start
    return count_spans(nlp, [example_of(nlp, text) for text in held]), seconds


def keep(texts: Sequence[Text], share: float, by: str, seed: str) -> list[Text]:
    """The texts with so many of their spans; a smaller share is part of a larger one.

    by (str): "random", or "name", where all spans of a wording are kept or none, and wordings are drawn in
        proportion to how often they occur.
    """
    rng = random.Random(f"{seed} {by}")
    spans = [(i, span) for i, text in enumerate(texts) for span in text.spans]
    names = [" ".join(texts[i].words[start:end]).lower() for i, (start, end, _) in spans]
    often = Counter(names) if by == "name" else Counter(map(str, range(len(spans))))
    of = names if by == "name" else list(map(str, range(len(spans))))
    # the first of so many arrivals of each: draws in proportion to the counts, without replacement
    order = sorted(often, key=lambda name: rng.expovariate(often[name]))
    wanted, kept = share * len(spans), set[str]()
    for name in order:
        if wanted <= 0:
            break
        kept.add(name)
        wanted -= often[name]
    found: list[list[tuple[int, int, str]]] = [[] for _ in texts]
    for name, (i, span) in zip(of, spans, strict=True):
        if name in kept:
            found[i].append(span)
    return [Text(text.words, own) for text, own in zip(texts, found, strict=True)]


def share_in_spans(texts: Sequence[Text]) -> float:
    """Share of the tokens that are in spans."""
    return sum(lengths(text.spans) for text in texts) / sum(len(text.words) for text in texts)


def lengths(spans: Spans) -> int:
    """Tokens in spans."""
    return sum(end - start for start, end, _ in spans)


if __name__ == "__main__":
    typer.run(main)
