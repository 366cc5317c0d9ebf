"""Which setting to change where a plan does not fit, or gains little from so many workers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from spacy_hocrf.cli.plan.costs import Cluster, Evaluation, Scale, evaluation, parts_of
from spacy_hocrf.cli.plan.memory import KINDS, PAIR, Memory, memory_of
from spacy_hocrf.cli.plan.sampling import COUNTS, Sample
from spacy_hocrf.cli.plan.words import gigabytes, number, seconds

__all__ = ["Row", "advice_on", "rows_of"]

FEW_PARTS = 4
"""Parts for each worker, from which on it does not matter that some have one more."""
ONE = dict(zip(KINDS, ("thread", "process", "actor of Ray")))
LARGE = 0.25
"""A share of the memory, or of the time, that something can be done about."""


@dataclass(frozen=True)
class Row:
    """Training by so many workers."""

    kind: str
    cluster: Cluster
    memory: Memory
    evaluation: Evaluation
    efficiency: float  # speed, by that of one worker without links times their number

    @property
    def name(self) -> str:
        """Who works."""
        workers = self.cluster.workers
        return f"{number(workers)} {ONE[self.kind] if workers == 1 else self.kind}"

    @property
    def machine(self) -> float:
        """Bytes of memory of the machine where the driver is."""
        return self.memory.machine(min(self.cluster.busy, self.cluster.cores))


def rows_of(
    sample: Sample,
    scale: Scale,
    workers: Sequence[int],
    cores: int,
    parts: int | None,
    bandwidth: float,
    streamed: bool,
) -> list[Row]:
    """Threads and processes of one machine; actors where there are more workers than its cores.

    parts (Optional[int]): as set in the config.
    """
    there = parts_of(scale, parts)
    alone = evaluation(sample.rates, scale, Cluster(1, there, cores, bandwidth)).seconds
    rows = []
    for count in workers:
        cluster = Cluster(count, there, cores, bandwidth)
        takes = evaluation(sample.rates, scale, cluster)
        for kind in KINDS[:2] if count <= cores else KINDS[2:]:
            memory = memory_of(sample, scale, cluster, kind, streamed)
            rows.append(Row(kind, cluster, memory, takes, alone / takes.seconds / count))
    return rows


def advice_on(
    sample: Sample, scale: Scale, rows: Sequence[Row], room: float, min_count: int
) -> Iterator[str]:
    """What to change, the most important first.

    room (float): bytes of memory of a machine. min_count (int): of the config.
    """
    largest = rows[-1]
    tight = [row for row in rows if row.machine > room]
    if tight:
        kinds = ", ".join(row.name for row in tight)
        yield f"More than {gigabytes(room)} of memory on the driver's machine: {kinds}."
        yield from _for_memory(sample, scale, tight, min_count)
        if len(tight) < len(rows):
            row = next(row for row in rows if row not in tight)
            block = "Ray" if row.kind == KINDS[2] else row.kind.capitalize()
            yield (
                f'{row.name} fit: @misc = "spacy-hocrf.{block}.v1" in '
                "[components.*.trainer.workers]."
            )
    yield from _for_parts(sample, scale, rows)
    yield from _for_links(sample, scale, largest, min_count)


def _for_memory(
    sample: Sample, scale: Scale, tight: Sequence[Row], min_count: int
) -> Iterator[str]:
    row = tight[-1]
    memory, total = row.memory, row.machine
    if memory.examples > LARGE * total:
        yield (
            f"The Examples that spaCy keeps take {gigabytes(memory.examples)}: with max_epochs = -1 in "
            "[training] they are streamed."
        )
    vectors = memory.optimiser + memory.features + memory.sums + memory.worker * row.cluster.busy
    if max(vectors, memory.passing) > LARGE * total:
        yield _of_counts(sample, scale, row, min_count)
        yield (
            f"Each pair of L-BFGS takes {gigabytes(PAIR * scale.features)}: memory = 5 in "
            f"[components.*.trainer] has 5 instead of {sample.memory}."
        )
    if memory.documents > LARGE * total:
        yield (
            f"What features are made from takes {gigabytes(memory.documents)}, which grows with the texts: "
            "train on fewer of them."
        )


def _of_counts(sample: Sample, scale: Scale, row: Row, min_count: int) -> str:
    """What rare features cost."""
    count = next((each for each in COUNTS if each > min_count), COUNTS[-1])
    fewer = sample.scale(scale.tokens, count)
    memory = memory_of(sample, fewer, row.cluster, row.kind, not row.memory.examples)
    takes = evaluation(sample.rates, fewer, row.cluster).seconds
    there = min(row.cluster.busy, row.cluster.cores)
    return (
        f"min_count = {count} in [components.*.model] leaves {number(fewer.features)} of "
        f"{number(scale.features)} features: {gigabytes(memory.machine(there))} and "
        f"{seconds(takes)} an evaluation for {row.name}."
    )


def _for_parts(sample: Sample, scale: Scale, rows: Sequence[Row]) -> Iterator[str]:
    row = rows[-1]
    cluster, parts = row.cluster, 4
    if cluster.parts >= FEW_PARTS * cluster.workers or cluster.workers == 1:
        return
    while parts < FEW_PARTS * cluster.workers:
        parts *= 2
    wanted = parts_of(scale, parts)
    takes = evaluation(sample.rates, scale, replace(cluster, parts=wanted)).seconds
    if takes >= row.evaluation.seconds:
        return
    idle = cluster.workers - cluster.busy
    what = (
        f"{number(idle)} of them have nothing to do" if idle else "some have more to do than others"
    )
    yield (
        f"{number(cluster.workers)} workers, but the corpus is cut into {number(cluster.parts)} parts: "
        f"{what}. parts = {wanted} in [components.*.trainer.workers] takes "
        f"{seconds(takes)} an evaluation instead of "
        f"{seconds(row.evaluation.seconds)}; it changes the last bits of the weights, once."
    )


def _for_links(sample: Sample, scale: Scale, row: Row, min_count: int) -> Iterator[str]:
    takes, cluster = row.evaluation, row.cluster
    share = 1 - takes.leaves / takes.seconds
    if cluster.machines == 1 or share < LARGE:
        return
    faster = evaluation(
        sample.rates, scale, replace(cluster, bandwidth=10 * cluster.bandwidth)
    ).seconds
    yield (
        f"Of {seconds(takes.seconds)} an evaluation by {number(cluster.workers)} workers, "
        f"{100 * share:.0f} % are for sums over all features and not for texts. Ten times the "
        f"bandwidth: {seconds(faster)}."
    )
    yield _of_counts(sample, scale, row, min_count)
