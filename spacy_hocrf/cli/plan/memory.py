"""How much memory training takes, and where.

With m pairs of L-BFGS, and sums that are there at the same time, S, the process that leads needs

    documents tokens + index F + max(passing, (68 + 4 m) F + 8 E (1 + S) + shards tokens)

bytes, the last two only where threads do the work. Where others work, shards and the records of the documents
are in files, and sums in what processes have in common; an actor has its own.
"""

from dataclasses import dataclass

from spacy_hocrf.cli.plan.costs import NUMBER, Cluster, Scale
from spacy_hocrf.cli.plan.sampling import Sample

__all__ = ["KINDS", "PAIR", "Memory", "memory_of"]

KINDS = ("threads", "processes", "actors of Ray")
PROGRAM = 150e6
"""Bytes of Python, spaCy and this package."""
WORKER = 25e6
"""Bytes of a process that only works: Python, NumPy and kernels."""
ACTOR = 110e6
"""Bytes of an actor, which has Ray besides."""
VECTORS = 68
"""Bytes a feature: a weight in single precision; in double precision two points, a direction, two gradients,
two diagonals, the counts of the annotation.
"""
PAIR = 4
"""Bytes a feature of a pair of L-BFGS."""


@dataclass(frozen=True)
class Memory:
    """In bytes."""

    program: float
    examples: float  # of spaCy's training, unless they are streamed
    documents: float
    features: float
    passing: float  # of `initialize`
    optimiser: float
    sums: float
    shards: float
    worker: float  # of each other process
    files: float  # that processes map, and what Ray's object stores hold

    @property
    def driver(self) -> float:
        """Of the process that leads, at most."""
        training = self.optimiser + self.sums + self.shards
        kept = self.program + self.examples + self.documents + self.features
        return kept + max(self.passing, training)

    def machine(self, workers: int) -> float:
        """Of the one where the driver is, and so many workers."""
        return self.driver + workers * self.worker


def memory_of(
    sample: Sample, scale: Scale, cluster: Cluster, kind: str, streamed: bool = False
) -> Memory:
    """What training takes.

    kind (str): one of KINDS. streamed (bool): does training keep no Examples?
    """
    vector = NUMBER * scale.extent
    tokens, features = scale.tokens, scale.features
    busy = min(cluster.busy, cluster.cores)
    waiting = (cluster.parts.bit_length() + busy) if cluster.parts > 1 else 1
    sums, shards = vector * (1 + min(cluster.parts, waiting)), sample.shards * tokens
    own = (cluster.parts // max(1, cluster.busy)).bit_length()  # sums that an actor has at a time
    alone, actors = kind == KINDS[0], kind == KINDS[2]
    fixed, passing = sample.passing
    return Memory(
        PROGRAM,
        0.0 if streamed else sample.examples * tokens,
        (sample.documents - (0.0 if alone else sample.records)) * tokens,
        sample.index * features,
        fixed + passing * features,
        (VECTORS + PAIR * sample.memory) * features,
        sums if alone else 2 * vector if actors else 0.0,
        shards if alone else 0.0,
        0.0 if alone else ACTOR + (1 + own) * vector if actors else WORKER,
        0.0 if alone else (2 * vector if actors else sums) + shards,
    )
