"""A simulated large language model: annotation with mistakes, asked several times.

How often it is wrong about a span is drawn for each span from a Beta distribution: about most it is nearly
always right, about some nearly always wrong, and of others it says now this, now that. What it says instead
is one thing for each span: another label, a neighbouring token more, or a token less. Some spans it does
not see at all, and as many as it gets wrong it invents, of words that are written with a capital letter.
"""

import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from readers import Text

Span = tuple[int, int, str]

MISSING = 0.2
"""Share of the spans that it does not see."""
SPREAD = 1.0
"""Of the Beta distribution: both parameters together. The smaller, the surer is it, right or wrong."""


def ask(texts: Sequence[Text], wrong: float, times: int, seed: str) -> list[list[list[Span]]]:
    """The answers for each text: spans that do not overlap.

    texts (Sequence[Text]): with the spans that are right. wrong (float): share of the spans that are not.
    times (int): that it is asked about each text.
    """
    rng = random.Random(seed)
    labels = sorted({label for text in texts for *_, label in text.spans})
    invented = inventions(rng, texts, labels, wrong)
    answers = []
    for text, more in zip(texts, invented, strict=True):
        known = [
            (
                span,
                mistake(rng, span, len(text.words), labels),
                draw(rng, MISSING),
                draw(rng, wrong),
            )
            for span in text.spans
        ]
        answers.append([answer(rng, known, more) for _ in range(times)])
    return answers


def answer(
    rng: random.Random,
    known: Sequence[tuple[Span, Span, float, float]],
    invented: Sequence[tuple[Span, float]],
) -> list[Span]:
    """One answer about a text."""
    said = [
        instead if rng.random() < mistaken else span
        for span, instead, missing, mistaken in known
        if rng.random() >= missing
    ]
    said += [span for span, often in invented if rng.random() < often]
    kept = list[Span]()
    for span in sorted(said):
        if not kept or kept[-1][1] <= span[0]:
            kept.append(span)
    return kept


def inventions(
    rng: random.Random, texts: Sequence[Text], labels: Sequence[str], wrong: float
) -> list[list[tuple[Span, float]]]:
    """Spans of each text where there are none, and how often they are said."""
    places = [
        (i, t)
        for i, text in enumerate(texts)
        for t, word in enumerate(text.words)
        if word[:1].isupper() and not any(start <= t < end for start, end, _ in text.spans)
    ]
    wanted = round(
        2 * wrong * sum(len(text.spans) for text in texts)
    )  # each is said half of the time
    invented: list[list[tuple[Span, float]]] = [[] for _ in texts]
    for i, t in sorted(rng.sample(places, min(wanted, len(places)))):
        invented[i].append(((t, t + 1, rng.choice(labels)), draw(rng, 0.5)))
    return invented


def draw(rng: random.Random, mean: float) -> float:
    """How often it is wrong."""
    return rng.betavariate(mean * SPREAD, (1 - mean) * SPREAD) if 0 < mean < 1 else mean


def mistake(rng: random.Random, span: Span, length: int, labels: Sequence[str]) -> Span:
    """What it says instead of a span."""
    start, end, label = span
    others = [each for each in labels if each != label]
    choices = [(start, end, rng.choice(others))] if others else []
    choices += [(start - 1, end, label)] if start else []
    choices += [(start, end + 1, label)] if end < length else []
    choices += [(start + 1, end, label), (start, end - 1, label)] if end - start > 1 else []
    return rng.choice(choices or [span])


def scores(answers: Sequence[Sequence[Span]]) -> dict[Span, float]:
    """In which share of the answers each span is."""
    counts = Counter(span for spans in answers for span in spans)
    return {span: count / len(answers) for span, count in sorted(counts.items())}


def majority(answers: Sequence[Sequence[Span]]) -> list[Span]:
    """Spans that are in more than half of the answers."""
    return [span for span, score in scores(answers).items() if score > 0.5]
