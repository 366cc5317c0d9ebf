"""Actors of a Ray cluster that share the work of training: `spacy-hocrf.Ray.v1`.

The parts of the data set are in the cluster's object store, from where each actor takes those that it works
on and keeps them. Sums stay there, too, and are added where they lie: only those of whole trees come back.
They are those of threads to the last bit, if all machines use the same instruction set.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar
from weakref import WeakSet, finalize

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.forest import Hand, Lost, Sum
from spacy_hocrf.engine.teams import Job, Team, check_workers
from spacy_hocrf.engine.threads import Threads
from spacy_hocrf.training.cluster import check_ray, shared
from spacy_hocrf.training.errors import WorkerErrors
from spacy_hocrf.training.mapped import objects_in, pieces_of
from spacy_hocrf.training.worker import Bench, common_of, names_of

__all__ = ["RayTeam", "RayWorkers"]

Vector = NDArray[np.float64]

DEATHS = 3
"""So often one part may fail since actors are gone, and for each actor one sum since what it had is."""


@dataclass(frozen=True)
class RayWorkers:
    """Actors with a CPU each: `spacy-hocrf.Ray.v1`. The cluster is the one that RAY_ADDRESS names, or one of
    this machine that ends with the training.

    number (int): how many; 0 for as many as the cluster has CPUs.
    parts (Optional[int]): as for `ProcessWorkers`.
    RAISES (ValueError): H048 for numbers out of range, H352 if Ray is not installed.
    """

    number: int = 0
    parts: int | None = None

    def __post_init__(self) -> None:
        check_workers(self.number, self.parts)
        check_ray()

    def scatter(self, job: Job) -> "RayTeam":
        """Put the shards into the object store. RAISES (ValueError): H353 without a cluster."""
        with ExitStack() as stack:
            ray = stack.enter_context(shared(self.number or None))
            cpus = int(ray.cluster_resources().get("CPU", 1))
            return RayTeam(job, ray, self.number or max(1, cpus), stack)


class RayTeam(Team):
    """Actors with the shards of a job.

    ray (Module): connected. number (int): of actors.
    stack (ExitStack): what ends the connection; taken over once the shards are handed out.

    Actors hold their CPUs for as long as they are there, so those of a team that has nothing to do go when
    another team of this process begins.
    """

    keeps = True
    _teams: ClassVar["WeakSet[RayTeam]"] = WeakSet()

    def __init__(self, job: Job, ray: Any, number: int, stack: ExitStack) -> None:
        number = min(number, max(1, len(job.parts)))
        super().__init__(job, Threads(number, most=number))
        self.ray = ray
        layout = job.layout
        known = names_of(job.automaton, layout, layout.shared)
        self._common = self._put(common_of(job), {})
        self.stored: list[Any] = []
        for shards in job.parts:
            for shard in shards:
                job.visit(shard)
            self.stored.append(self._put([shard.compiled for shard in shards], known))
            for shard in shards:
                shard.rest()
        self._new = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(_Actor).remote
        self._hired = [_RayHand(self, each) for each in range(number)]
        self._placed: Any = None
        self.evaluation = 0
        self.weights: Any = None
        """Where the placed weights of this evaluation are."""
        self._close = finalize(self, stack.pop_all().close)
        self._busy = False
        self._teams.add(self)

    def add_into(self, gradient: Vector, weights: Vector) -> list[float]:
        """As `Team.add_into`; what is lost with a machine is done again.

        RAISES (ValueError): besides, H253 if that happens again and again.
        """
        for team in list(self._teams):
            if team is not self and not team._busy:
                team.rest()
        self._busy, self._losses = True, 0
        try:
            return super().add_into(gradient, weights)
        finally:
            self._busy = False

    def rest(self) -> None:
        """The actors end, and give back what they keep of the parts; the next sum has others."""
        for hand in self._hired:
            hand.end()

    def hire(self) -> Any:
        """A new actor."""
        return self._new([self._common])

    def fetch(self, found: Sum) -> Sum:
        """A sum with its counts, which are copied from the object store."""
        try:
            numbers = np.array(self.ray.get(found.counts))
        except self.ray.exceptions.RayError as error:
            raise self.lost(error) from error
        return found._replace(counts=self.job.layout.view(numbers))

    def lost(self, reason: Exception) -> Lost:
        """That sums are gone. RAISES (ValueError): H253 if there are too many."""
        self._losses += 1
        if self._losses > DEATHS * len(self._hired):
            text = WorkerErrors.H253.format(times=self._losses, part="-", reason=reason)
            raise ValueError(text) from reason
        return Lost()

    def _put(self, value: Any, known: dict[int, str]) -> Any:
        data = b"".join(pieces_of(value, known))
        return self.ray.put(np.frombuffer(data, dtype=np.uint8))

    def _hands(self, weights: Vector) -> Sequence[Hand]:
        self._placed = self.job.layout.place_weights(weights, self._placed)
        self.evaluation += 1
        self.weights = self.ray.put(self._placed.numbers)
        return self._hired

    def _free(self, counts: Any) -> None:
        """Nothing is kept here."""


class _RayHand:
    """What waits for one of the actors, and replaces it when it has died."""

    def __init__(self, team: RayTeam, number: int) -> None:
        self._team, self._actor = team, None

    def leaf(self, number: int) -> Sum:
        """Of one part.

        RAISES (ValueError): what the task has raised; H253 if actors die again and again, H254 if they do not
            know what to do.
        """
        team = self._team
        errors = team.ray.exceptions
        for _ in range(DEATHS):
            try:
                request = number, [team.stored[number]], team.evaluation, team.weights
                answer, numbers = self._asked("total", 2, *request)
                found = team.ray.get(answer)
            except errors.RayTaskError as error:
                raise ValueError(WorkerErrors.H254.format(reason=error)) from error
            except errors.RayError as error:
                self._actor, reason = None, error
                continue
            if "invalid" in found:
                raise ValueError(found["invalid"])
            return Sum(found["loss"], numbers)
        text = WorkerErrors.H253.format(times=DEATHS, part=number, reason=reason)
        raise ValueError(text) from reason

    def join(self, left: Sum, right: Sum) -> Sum:
        """Of two neighbours, added where they lie. RAISES (Lost): if one of them, or the actor, is gone."""
        team = self._team
        try:
            done, counts = self._asked("add", 2, left.counts, right.counts)
            team.ray.get(done)
        except (
            team.ray.exceptions.RayTaskError
        ) as error:  # the actor is there, what it needs is not
            raise team.lost(error) from error
        except team.ray.exceptions.RayError as error:
            self._actor = None
            raise team.lost(error) from error
        return Sum(left.loss + right.loss, counts)

    def end(self) -> None:
        """Let the actor go, if there is one."""
        if self._actor is not None:
            self._team.ray.kill(self._actor)
            self._actor = None

    def _asked(self, method: str, results: int, *request: Any) -> Any:
        """References to what an actor will answer."""
        if self._actor is None:
            self._actor = self._team.hire()
        return getattr(self._actor, method).options(num_returns=results).remote(*request)


class _Actor:
    """Sums over parts, which it keeps.

    common (List[ObjectRef]): where what sums have in common is.
    """

    def __init__(self, common: list[Any]) -> None:
        self._common = common
        self._bench: Bench | None = None
        self._parts: dict[int, Any] = {}
        self._evaluation = 0
        self._placed: Any = None

    def total(
        self, number: int, stored: list[Any], evaluation: int, weights: Vector
    ) -> tuple[dict[str, Any], Vector]:
        """Sum over a part at placed weights, float64 [extent]. RETURNS: the answer, and the counts."""
        if self._bench is None:
            self._bench = Bench(_objects(self._common, {}))
        bench = self._bench
        if number not in self._parts:
            self._parts[number] = _objects(stored, bench.known)
        if self._evaluation != evaluation:
            self._evaluation, self._placed = evaluation, bench.outline.zeros()
            self._placed.numbers[:] = weights
        counts = bench.outline.zeros()
        return bench.total(self._parts[number], self._placed, counts), counts.numbers

    def add(self, left: Vector, right: Vector) -> tuple[None, Vector]:
        """The counts of two neighbours, and before them that they are there."""
        return None, left + right


def _objects(stored: list[Any], known: dict[str, Any]) -> Any:
    """Objects that are in the object store."""
    import ray

    [data] = ray.get(stored)
    return objects_in(memoryview(bytearray(data)), known, "the object store")
