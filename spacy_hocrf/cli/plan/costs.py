"""What training takes, as a formula of a few numbers that can be measured.

With N tokens, F features, E placed numbers (`model/placement.py`), P parts, W workers of which B = min(W, P)
have something to do, on M machines with a link of b bytes a second each, an evaluation takes

    weights    E place + ceil(log2(1 + M)) 8 E / b         from the driver, each machine handing them on
    leaves     ceil(P / B) (token N / P + clear E)         of the worker with most parts
    own sums   (ceil(P / B) - 1) add E                     of neighbours that it has itself
    tree       ceil(log2(B / 4)) add E + ceil(log2(M / 4)) 8 E / b
    driver     4 (8 E / b + collect F) + step F            of the four trees, one after another; L-BFGS

where what is on one machine is not sent. Small letters are seconds of one core, by token or by number.
"""

import math
from dataclasses import dataclass
from typing import Any

from spacy_hocrf.engine.teams import STRANDS, Parts
from spacy_hocrf.pipeline.shards import SHARD_TOKENS

__all__ = [
    "NUMBER",
    "Cluster",
    "Evaluation",
    "Growth",
    "Rates",
    "Scale",
    "evaluation",
    "levels",
    "parts_of",
]

NUMBER = 8
"""Bytes of a number that is added up."""


@dataclass(frozen=True)
class Growth:
    """How a number grows with the corpus: as a power of it (Heaps' law), whose exponent falls."""

    value: float  # at the corpus that is there
    exponent: float  # there
    falling: float  # of the exponent, with every doubling; 0 or more

    def most(self, times: float) -> float:
        """In so many times the corpus, if the exponent falls no more."""
        return float(self.value * times ** max(0.0, self.exponent))

    def least(self, times: float) -> float:
        """The same if the exponent falls on, to 0."""
        doublings = math.log2(times)
        if doublings <= 0.0:
            return self.most(times)
        if self.falling > 0.0:
            doublings = min(doublings, max(0.0, self.exponent) / self.falling)
        mean = max(0.0, self.exponent) - self.falling * doublings / 2
        return float(self.value * 2 ** (mean * doublings))


@dataclass(frozen=True)
class Rates:
    """Seconds of one core."""

    token: float  # for all inference on a token
    clear: float  # to make a number 0
    add: float  # to add a number of one sum to another
    place: float  # for a feature, to put its weight where shards want it
    collect: float  # to take its count from there
    step: float  # for a feature, in the optimiser and the prior
    latency: float = 0.0005  # from the end of a sum to the next one's beginning


@dataclass(frozen=True)
class Scale:
    """What is trained."""

    tokens: float  # N
    features: float  # F
    extent: float  # E


@dataclass(frozen=True)
class Cluster:
    """Who works."""

    workers: int  # W
    parts: int  # P
    cores: int  # workers of a machine
    bandwidth: float  # bytes a second, b

    @property
    def busy(self) -> int:
        """Workers that have something to do, B."""
        return min(self.workers, self.parts)

    @property
    def machines(self) -> int:
        """M, the driver being on one of them."""
        return -(-self.busy // self.cores)

    @property
    def most_parts(self) -> int:
        """Of a worker."""
        return -(-self.parts // self.busy)


@dataclass(frozen=True)
class Evaluation:
    """Seconds of an evaluation and of the step that follows it, and what goes over links."""

    weights: float
    leaves: float
    sums: float  # own sums, and the tree
    driver: float
    traffic: float  # bytes

    @property
    def seconds(self) -> float:
        """Of all of it."""
        return self.weights + self.leaves + self.sums + self.driver


def evaluation(rates: Rates, scale: Scale, cluster: Cluster) -> Evaluation:
    """What an evaluation takes: see above."""
    extent, parts, machines = scale.extent, cluster.parts, cluster.machines
    sent = NUMBER * extent / cluster.bandwidth
    remote = machines > 1
    most = cluster.most_parts
    leaf = rates.token * scale.tokens / parts + rates.clear * extent + rates.latency
    hops = levels(machines, STRANDS)
    joins = levels(cluster.busy, STRANDS)
    trees = min(STRANDS, parts)
    afar = min(trees, machines - 1)  # trees whose sum is not where the driver is
    return Evaluation(
        rates.place * scale.features + math.ceil(math.log2(machines)) * sent,
        most * leaf,
        (most - 1 + joins) * (rates.add * extent + rates.latency) + hops * sent * remote,
        trees * rates.collect * scale.features + afar * sent + rates.step * scale.features,
        # weights to all machines but the driver's; of each machine but four a sum to another; four sums
        NUMBER * extent * (machines - 1 + max(0, machines - STRANDS) + afar),
    )


def levels(number: int, trees: int) -> int:
    """Of trees, above so many that are shared out evenly."""
    return max(0, math.ceil(math.log2(max(1, number) / trees)))


def parts_of(scale: Scale, setting: int | None) -> int:
    """Of a corpus.

    setting (Optional[int]): `parts` in the config.
    """
    shards = 1
    if scale.tokens > SHARD_TOKENS:
        shards = STRANDS * math.ceil(scale.tokens / (SHARD_TOKENS * STRANDS))
    nothing: Any = range(shards)  # only their number matters
    return len(Parts.of(nothing, round(scale.extent), setting))
