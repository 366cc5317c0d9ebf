"""Workers under a simulated clock: some are slow, machines fail, links carry one thing at a time.

The schedule, the tree of sums and how it is collected are those of the package (`engine/forest.py`,
`engine/teams.py`); only hands and time are simulated.
"""

import hashlib
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from typing import Any

import numpy as np

from spacy_hocrf.cli.plan.costs import Cluster, Rates, Scale
from spacy_hocrf.engine.forest import Assignment, Forest, Lost, Sum
from spacy_hocrf.engine.teams import Job, Parts, Team
from spacy_hocrf.engine.threads import Threads
from spacy_hocrf.model.outline import Outline

SMALL = 16
"""Numbers of a vector that is really added up."""


@dataclass(frozen=True)
class Chances:
    """What goes wrong."""

    spread: float = 0.1  # of the logarithm of the time of a leaf
    slow: float = 0.01  # leaves that take 5 times as long
    failure: float = 0.0  # of a machine, a second
    back: float = 30.0  # seconds until there is another one


CALM = Chances(0.0, 0.0)
USUAL = Chances()
ROUGH = Chances(failure=1 / 3600)


@dataclass(frozen=True)
class Found:
    """An evaluation."""

    seconds: float
    sent: float  # bytes
    deaths: int  # of machines
    again: int  # leaves that were done once more
    digest: str  # of loss and gradient


class SmallLayout(Outline):
    """Numbers where they are."""

    hands_on = False
    n_labels = n_patterns = n_dense = 0
    places = SMALL
    length_pattern = np.zeros(0, dtype=np.int32)
    length_bins = np.zeros((0, 0))

    def add_collected_into(self, gradient: Any, counts: Any, others: Any = None) -> None:
        """Add them up."""
        gradient += counts.numbers


@dataclass
class Place:
    """Where a sum is: with a machine, as long as that has not failed."""

    numbers: Any
    machine: int
    life: int


class SimulatedTeam(Team):
    """Workers that exist only by what their work takes.

    cluster (Cluster), rates (Rates), scale (Scale): of the full size. chances (Chances): of what goes wrong.
    keeps (bool): does each have parts of its own? seed (int): of chance.
    """

    def __init__(
        self,
        cluster: Cluster,
        rates: Rates,
        scale: Scale,
        chances: Chances,
        keeps: bool = True,
        seed: int = 0,
    ) -> None:
        shards: Any = range(cluster.parts)
        layout: Any = SmallLayout()
        job: Any = Job(Parts.of(shards, 0, cluster.parts), _nothing, layout, None, _nothing)  # type: ignore[arg-type]
        super().__init__(job, Threads(1))
        self.keeps = keeps  # type: ignore[misc]
        self.cluster, self._rates, self._scale, self._chances = cluster, rates, scale, chances
        self._random = random.Random(seed)
        machines = cluster.machines
        self.lives, self.deaths, self.again, self.sent = [0] * machines, 0, 0, 0.0
        self.now = 0.0
        self._out, self._in = [0.0] * machines, [0.0] * machines  # when links are free
        self._vector = 8 * scale.extent
        self._back = [0.0] * machines  # when machines are there again
        self._driver = 0.0  # when it is free to collect
        self._fails = [self._next_failure(0.0) for _ in range(machines)]

    def rest(self) -> None:
        """Nothing is kept."""

    def machine(self, hand: int) -> int:
        """Where a hand works; the driver is on the first one."""
        return hand // self.cluster.cores

    def alive(self, place: Place) -> bool:
        """Is a sum still there?"""
        return self.lives[place.machine] == place.life

    def _free(self, counts: Any) -> None:
        """Counts are used up where they are."""

    def _hands(self, weights: Any) -> Sequence[Any]:
        return [_Hand(self, each) for each in range(self.cluster.busy)]

    def _run(self, forest: Forest, hands: Sequence[Any]) -> None:
        """Events in the order of time: a hand has nothing to do, or is done with what it did."""
        order, events, idle = count(), list[Any](), list[int]()
        ready = self._weights()
        for hand in hands:
            heappush(events, (ready[self.machine(hand.number)], next(order), hand.number, None, 0))
        while not forest.over:
            self.now, _, number, task, life = heappop(events)
            machine, following, free = self.machine(number), None, [number]
            if task is not None and self.lives[machine] == life:
                try:
                    following = forest.finish(task, task.do(hands[number]))
                except Lost:
                    free += self._lose(forest, task, idle)
            elif (
                task is not None and task.pair is None
            ):  # another actor is hired, for the same part
                self.again += 1
                following = task
            elif task is not None:
                free += self._lose(forest, task, idle)
            for each in free:
                then = (following if each == number else None) or forest.take(each)
                if then is None:
                    idle.append(each)
                else:
                    at = self.machine(each)
                    begun = max(self.now, self._back[at])
                    heappush(events, self._event(begun, next(order), each, then))

    def _event(
        self, begun: float, order: int, number: int, task: Assignment
    ) -> tuple[float, int, int, Assignment, int]:
        """The end of a task, which is when the machine fails if it does so before."""
        machine, end = self.machine(number), begun
        life = self.lives[machine]
        rates, scale = self._rates, self._scale
        if task.pair is None:
            takes = rates.token * scale.tokens / self.cluster.parts * self._delay()
            end += takes + rates.clear * scale.extent + rates.latency
        else:
            for each in task.pair:
                if each.counts.machine != machine and self.alive(each.counts):
                    end = max(end, self._send(begun, each.counts.machine, machine))
            end += rates.add * scale.extent + rates.latency
        if 1 << task.node.height == self.job.parts.leaves:  # the driver gets it
            at = self._send(end, machine, 0) if machine else end
            end = self._driver = max(at, self._driver) + rates.collect * scale.features
        if self._fails[machine] < end:
            end = max(begun, self._fails[machine])
            self._fail(machine, end)
        return end, order, number, task, life

    def _lose(self, forest: Forest, task: Assignment, idle: list[int]) -> list[int]:
        """What a task was made of is gone. RETURNS (List[int]): who had nothing to do, and has now."""
        self.again += 1 << task.node.height
        forest.lose(task)
        free, idle[:] = list(idle), []
        return free

    def _fail(self, machine: int, at: float) -> None:
        """A machine is gone, with all that it has; there is another one in its place later."""
        back = at + self._chances.back
        self.lives[machine] += 1
        self.deaths += 1
        self._back[machine] = back
        self._fails[machine] = self._next_failure(back)

    def _next_failure(self, after: float) -> float:
        chance = self._chances.failure
        return after + self._random.expovariate(chance) if chance else math.inf

    def _delay(self) -> float:
        """A factor."""
        chances = self._chances
        slow = 5.0 if self._random.random() < chances.slow else 1.0
        return slow * math.exp(self._random.gauss(0.0, chances.spread))

    def _send(self, begun: float, source: int, target: int) -> float:
        """When a vector has got there."""
        begun = max(begun, self._out[source], self._in[target])
        end = begun + self._vector / self.cluster.bandwidth
        self._out[source] = self._in[target] = end
        self.sent += self._vector
        return end

    def _weights(self) -> list[float]:
        """When each machine has them: who has them hands them on."""
        begun = self._rates.place * self._scale.features
        have, ready = [(begun, 0)], [begun] * self.cluster.machines
        for machine in range(1, self.cluster.machines):
            at, source = heappop(have)
            ready[machine] = end = self._send(at, source, machine)
            heappush(have, (end, source))
            heappush(have, (end, machine))
        return ready


class _Hand:
    """One of the workers."""

    def __init__(self, team: SimulatedTeam, number: int) -> None:
        self._team, self.number = team, number

    def leaf(self, number: int) -> Sum:
        """Of one part: numbers that are the part's own, of many magnitudes, so that rounding tells orders."""
        drawn = np.random.default_rng(number)
        numbers = drawn.normal(size=SMALL) * 10.0 ** drawn.integers(-8, 9, size=SMALL)
        return Sum(float(numbers[0]), self._here(numbers))

    def join(self, left: Sum, right: Sum) -> Sum:
        """Of two neighbours, if both are there still."""
        if not (self._team.alive(left.counts) and self._team.alive(right.counts)):
            raise Lost
        found = self._team.join(left, right)
        return Sum(found.loss, self._here(found.counts.numbers))

    def _here(self, numbers: Any) -> Place:
        machine = self._team.machine(self.number)
        return Place(numbers, machine, self._team.lives[machine])


def _nothing(*_: Any) -> float:
    return 0.0


def simulate(
    cluster: Cluster,
    rates: Rates,
    scale: Scale,
    chances: Chances,
    keeps: bool = True,
    seed: int = 0,
) -> Found:
    """An evaluation and the step after it."""
    team = SimulatedTeam(cluster, rates, scale, chances, keeps, seed)
    gradient = np.zeros(SMALL)
    losses = team.add_into(gradient, gradient)
    digest = hashlib.sha256(np.array([*losses, *gradient]).tobytes()).hexdigest()
    seconds = team.now + rates.step * scale.features
    return Found(seconds, team.sent, team.deaths, team.again, digest)
