"""Actors of a Ray cluster that share the work of training: `spacy-hocrf.Ray.v1`.

Each actor has its parts of the data set in files of its machine, which it maps, and is sent them as they are
compiled. Sums stay with the actors that have made them, which have neighbours and add most of them in place;
the others go through the cluster's object store, and those of whole trees come back. They are those of
threads to the last bit, if all machines use the same instruction set.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import Any, ClassVar, NamedTuple
from weakref import WeakSet, finalize

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.forest import Hand, Lost, Sum, dealt
from spacy_hocrf.engine.teams import Job, Team, check_workers
from spacy_hocrf.engine.threads import Threads
from spacy_hocrf.training.cluster import check_ray, shared
from spacy_hocrf.training.errors import WorkerErrors
from spacy_hocrf.training.mapped import mapped_objects, objects_in, pieces_of
from spacy_hocrf.training.worker import Bench, common_of, names_of

__all__ = ["RayTeam", "RayWorkers"]

Vector = NDArray[np.float64]

DEATHS = 3
"""So often one part may fail since actors are gone, and for each actor one sum since what it had is."""


@dataclass(frozen=True)
class RayWorkers:
    """Actors with a CPU each: `spacy-hocrf.Ray.v1`. The cluster is the one that RAY_ADDRESS names, or one of
    this machine that ends with the training.

    number (int): how many, but no more than the cluster has CPUs, where others would wait for ever; 0 for as
        many.
    parts (Optional[int]): as for `ProcessWorkers`.
    folder (Optional[str]): where files lie meanwhile, on each machine; None for the system's folder of
        temporary files. They have no names, and are gone with the process that has them.
    RAISES (ValueError): H048 for numbers out of range, H352 if Ray is not installed.
    """

    number: int = 0
    parts: int | None = None
    folder: str | None = None

    def __post_init__(self) -> None:
        check_workers(self.number, self.parts)
        check_ray()

    def scatter(self, job: Job) -> "RayTeam":
        """Send the shards to actors. RAISES (ValueError): H353 without a cluster."""
        with ExitStack() as stack:
            ray = stack.enter_context(shared(self.number or None))
            cpus = max(1, int(ray.cluster_resources().get("CPU", 1)))
            return RayTeam(job, ray, min(self.number or cpus, cpus), self.folder, stack)


class RayTeam(Team):
    """Actors with the shards of a job.

    ray (Module): connected. number (int): of actors. folder (Optional[str]): where they have files.
    stack (ExitStack): what ends the connection; taken over once the shards are handed out.
    RAISES (ValueError): H254 if an actor cannot keep what it is sent.

    Actors hold their CPUs for as long as they are there, so those of a team that has nothing to do go when
    another team of this process begins.
    """

    keeps = True
    _teams: ClassVar["WeakSet[RayTeam]"] = WeakSet()

    def __init__(
        self, job: Job, ray: Any, number: int, folder: str | None, stack: ExitStack
    ) -> None:
        number = min(number, max(1, len(job.parts)))
        super().__init__(job, Threads(number, most=number))
        self.ray = ray
        layout = job.layout
        self._known = names_of(job.automaton, layout, layout.shared)
        self._common = self._put(common_of(job), {})
        self._folder = folder
        self._new = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(_Actor).remote
        self._hired = [_RayHand(self) for _ in range(number)]
        self._placed: Any = None
        self.evaluation = 0
        self.weights: Any = None
        """Where the placed weights of this evaluation are."""
        self._busy = False
        self._make_room()
        try:
            self._hand_out()
        except BaseException:
            self.rest()
            raise
        self._close = finalize(self, stack.pop_all().close)
        self._teams.add(self)

    def add_into(self, gradient: Vector, weights: Vector) -> list[float]:
        """As `Team.add_into`; what is lost with a machine is done again.

        RAISES (ValueError): besides, H253 if that happens again and again.
        """
        self._make_room()
        self._busy, self._losses = True, 0
        try:
            return super().add_into(gradient, weights)
        finally:
            self._busy = False

    def rest(self) -> None:
        """The actors end, and with them what they have of the parts; the next sum has others."""
        for hand in self._hired:
            hand.end()

    def hire(self) -> Any:
        """A new actor."""
        return self._new([self._common], self._folder)

    def part(self, number: int) -> Any:
        """Where a part is, which nobody has yet: compiled, and in the object store until it is dropped."""
        shards = self.job.parts.part(number)
        stored = self._put([shard.compiled for shard in shards], self._known)
        for shard in shards:
            shard.rest()
        return stored

    def fetch(self, found: Sum) -> Sum:
        """A sum with its counts, which are copied from the object store."""
        counts = self.handed_on(found)
        try:
            numbers = np.array(self.ray.get(counts))
        except self.ray.exceptions.RayError as error:
            raise self.lost(error) from error
        return found._replace(counts=self.job.layout.view(numbers))

    def handed_on(self, found: Sum) -> Any:
        """Where the counts of a sum are in the object store; its actor has them no longer.

        RAISES (Lost): if they are gone with it.
        """
        held: _Held = found.counts
        done, counts = held.actor.hand_on.options(num_returns=2).remote(held.key)
        try:
            self.ray.get(done)
        except self.ray.exceptions.RayError as error:
            raise self.lost(error) from error
        return counts

    def lost(self, reason: Exception) -> Lost:
        """That sums are gone. RAISES (ValueError): H253 if there are too many."""
        self._losses += 1
        if self._losses > DEATHS * len(self._hired):
            text = WorkerErrors.H253.format(times=self._losses, part="-", reason=reason)
            raise ValueError(text) from reason
        return Lost()

    def _make_room(self) -> None:
        """The actors of teams that have nothing to do go."""
        for team in list(self._teams):
            if team is not self and not team._busy:
                team.rest()

    def _hand_out(self) -> None:
        """Every part, to the actor that will have it in every sum if all goes well."""
        parts = self.job.parts
        for hand, numbers in zip(self._hired, dealt(len(parts), len(self._hired))):
            for number in numbers:
                for shard in parts.part(number):
                    self.job.visit(shard)
                hand.send(number)

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


class _Held(NamedTuple):
    """Counts that an actor has."""

    actor: Any
    key: int


class _RayHand:
    """What waits for one of the actors, and replaces it when it has died."""

    def __init__(self, team: RayTeam) -> None:
        self._team, self._actor = team, None
        self._sent = set[int]()  # parts that the actor has
        self._sending: Any = None  # what it will say of the last one

    def send(self, number: int) -> None:
        """Send the actor a part, when it has the one before.

        RAISES (ValueError): H254 if it could not keep that one.
        """
        part = self._team.part(number)
        try:
            self._settle()
            self._sending = self._asked("keep", number, part)
            self._sent.add(number)
        except self._team.ray.exceptions.RayError:
            self._lose()

    def leaf(self, number: int) -> Sum:
        """Of one part.

        RAISES (ValueError): what the task has raised; H253 if actors die again and again, H254 if they do not
            know what to do.
        """
        team = self._team
        errors = team.ray.exceptions
        reason: Exception | None = None
        for _ in range(DEATHS):
            if number not in self._sent:
                self.send(number)
            try:
                self._settle()
                request = number, team.evaluation, team.weights
                found = team.ray.get(self._asked("total", *request))
            except errors.RayTaskError as error:
                raise ValueError(WorkerErrors.H254.format(reason=error)) from error
            except errors.RayError as error:
                self._lose()
                reason = error
                continue
            if "invalid" in found:
                raise ValueError(found["invalid"])
            return Sum(found["loss"], _Held(self._actor, found["key"]))
        text = WorkerErrors.H253.format(times=DEATHS, part=number, reason=reason)
        raise ValueError(text) from reason

    def join(self, left: Sum, right: Sum) -> Sum:
        """Of two neighbours, added where they lie. RAISES (Lost): if one of them, or the actor, is gone."""
        team = self._team
        counts = [
            each.counts.key if each.counts.actor is self._actor else team.handed_on(each)
            for each in (left, right)
        ]
        try:
            key = team.ray.get(self._asked("add", team.evaluation, *counts))
        except (
            team.ray.exceptions.RayTaskError
        ) as error:  # the actor is there, what it needs is not
            raise team.lost(error) from error
        except team.ray.exceptions.RayError as error:
            self._lose()
            raise team.lost(error) from error
        return Sum(left.loss + right.loss, _Held(self._actor, key))

    def end(self) -> None:
        """Let the actor go, if there is one."""
        if self._actor is not None:
            self._team.ray.kill(self._actor)
            self._lose()

    def _settle(self) -> None:
        """Wait until the actor has what it was sent. RAISES (ValueError): H254 if it could not keep it."""
        sending, self._sending = self._sending, None
        if sending is not None:
            try:
                self._team.ray.get(sending)
            except self._team.ray.exceptions.RayTaskError as error:
                raise ValueError(WorkerErrors.H254.format(reason=error)) from error

    def _lose(self) -> None:
        """The actor is gone, and what it had."""
        self._actor, self._sending = None, None
        self._sent.clear()

    def _asked(self, method: str, *request: Any) -> Any:
        """A reference to what an actor will answer."""
        if self._actor is None:
            self._actor = self._team.hire()
        return getattr(self._actor, method).remote(*request)


class _Actor:
    """Sums over parts, which it keeps.

    common (List[ObjectRef]): where what sums have in common is.
    folder (Optional[str]): for files; None for the system's folder of temporary files.
    """

    def __init__(self, common: list[Any], folder: str | None) -> None:
        import ray

        [data] = ray.get(common)
        self._bench = Bench(objects_in(memoryview(bytearray(data)), {}, "the object store"))
        self._folder = folder
        self._parts: dict[int, Any] = {}
        self._placed = self._bench.outline.zeros()
        self._weighted = self._evaluation = 0
        self._sums: dict[int, Any] = {}  # of this evaluation
        self._spare: list[Any] = []
        self._keys = 0

    def keep(self, number: int, part: Any) -> None:
        """Write a part to a file without a name, and map it.

        RAISES (OSError): if there is no place for it.
        """
        with TemporaryFile(dir=self._folder) as file:
            file.write(part)
            file.flush()
            self._parts[number] = mapped_objects(file, self._bench.known, f"part {number}")

    def total(self, number: int, evaluation: int, weights: Vector) -> dict[str, Any]:
        """Sum over a part at placed weights, float64 [extent].

        RETURNS (Dict[str, Any]): the answer, and a key of the counts.
        """
        self._begin(evaluation)
        if self._weighted != evaluation:
            self._weighted = evaluation
            self._placed.numbers[:] = weights
        key, counts = self._nothing()
        counts.numbers.fill(0.0)
        return {**self._bench.total(self._parts[number], self._placed, counts), "key": key}

    def add(self, evaluation: int, left: int | Vector, right: int | Vector) -> int:
        """The counts of two neighbours: of those that are here the keys. RETURNS (int): a key of the sum."""
        self._begin(evaluation)
        if not isinstance(left, int):  # the order of two makes no difference
            left, right = right, left
        if not isinstance(left, int):
            key, counts = self._nothing()
            np.add(left, right, out=counts.numbers)
            return key
        other = right if not isinstance(right, int) else self._sums[right].numbers
        self._sums[left].numbers[:] += other
        if isinstance(right, int):
            self._spare.append(self._sums.pop(right))
        return left

    def hand_on(self, key: int) -> tuple[None, Vector]:
        """Counts that are another's from now on, and before them that they are there."""
        counts = self._sums.pop(key)
        self._spare.append(counts)
        return None, counts.numbers

    def _begin(self, evaluation: int) -> None:
        """Forget what an evaluation before has left."""
        if self._evaluation != evaluation:
            self._evaluation = evaluation
            self._spare += self._sums.values()
            self._sums.clear()

    def _nothing(self) -> tuple[int, Any]:
        """A key, and counts that are anything."""
        self._keys += 1
        counts = self._spare.pop() if self._spare else self._bench.outline.zeros()
        self._sums[self._keys] = counts
        return self._keys, counts
