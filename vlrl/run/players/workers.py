"""Rollout workers as the driver sees them: it hands out tickets and gets numbers and references."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

import pyarrow as pa

from vlrl import cluster
from vlrl.batch import StepBatch, StoredBatch, TokenValues
from vlrl.cluster.frames import rejoin, separate
from vlrl.config import Config
from vlrl.engine.policy import VllmPolicy
from vlrl.engine.requests import JointBatch
from vlrl.errors import EngineDied, VlrlError
from vlrl.packing.options import PackOptions
from vlrl.rollout.buffer import Ticket
from vlrl.rollout.outcome import Round, TicketOutcome, summed_counts
from vlrl.run.lock import LOCK_FILE
from vlrl.run.players.division import Division
from vlrl.run.players.handle import WorkerHandle
from vlrl.run.players.heldout import Answers, Asking
from vlrl.run.players.rollouts import GenerateFn
from vlrl.run.players.tables import OutcomeNumbers, Tabulated
from vlrl.run.players.worker import Lost, Packed, RolloutWorker
from vlrl.scoring.metrics import merged_metrics
from vlrl.storage.shared_folder import SharedFile
from vlrl.tracking.metrics import WORKER_COUNTS
from vlrl.tracking.rollouts.records import write_encoded
from vlrl.types import Group, Sample

TellFn = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class StoredGroups:
    """References of an outcome's groups, see `vlrl.cluster.frames`: they outlive the worker that made them.

    Attributes:
        pickled: the groups without frames.
        frames: of their media.
    """

    pickled: Any
    frames: Any


JointBatches = dict[int, JointBatch]
"""What a worker's requests are part of, by engine."""
AskFn = Callable[[Any, list[int], JointBatches], list[Any]]
"""(worker, its positions, its batches) → references: its answer, then two of each position's groups."""
Answered = tuple[Any, list[int], list[StoredGroups]]
"""A worker's answer, its positions, and each one's groups."""


class RolloutWorkers:
    """Plays episodes in workers near the engines; one that dies is replaced, and its episodes replayed."""

    def __init__(
        self,
        config: Config,
        reservation: cluster.Reservation,
        policy: VllmPolicy,
        tell: TellFn,
    ) -> None:
        """Start the workers; `wait_ready` waits for them.

        Args:
            config: the whole config.
            reservation: of their places.
            policy: owner of the engines.
            tell: called with an event's name and a sentence.
        """
        self._config, self._division = config, Division.of(reservation.layout)
        self._policy, self._tell = policy, tell
        lock = config.run_dir / LOCK_FILE  # an evaluation has none, and keeps no rollouts this way
        self._run_file = SharedFile.written_to(lock) if lock.is_file() else None
        self._joins = config.generator.mode == "batch" and config.episodes.lockstep
        self._num_ranks, self._rounds, self._packs = config.trainer.world_size, count(), count()
        self._handles = [
            WorkerHandle(
                partial(self._spawn, number, place),
                place,
                name=f"rollout worker {number}",
                max_restarts=config.rollout.max_worker_restarts,
                timeout_s=config.ray.start_timeout_s,
            )
            for number, place in enumerate(reservation.workers)
        ]
        self._listening: list[asyncio.Task[None]] = []
        self._counted: Counter[str] = Counter()

    def _spawn(self, number: int, place: cluster.Place) -> Any:
        """A worker's actor, which knows the engines as they are now."""
        arguments = (self._config, number, self._division, self._policy.actors, self._run_file)
        return cluster.spawn(RolloutWorker, *arguments, place=place, env={})

    def wait_ready(self) -> float:
        """Block until all workers have started; seconds the slowest took."""
        return max(handle.wait_ready() for handle in self._handles)

    async def play(self, generate: GenerateFn, tickets: Sequence[Ticket[TicketOutcome]]) -> Round:
        """What tickets become, each played by its worker."""
        by_position = {ticket.position: replace(ticket) for ticket in tickets}

        def ask(worker: Any, positions: list[int], joint_batches: JointBatches) -> list[Any]:
            share = [by_position[position] for position in positions]
            return cluster.split(worker.play, 1 + 2 * len(share), generate, share, joint_batches)

        played = await self._divide(list(by_position), ask)
        for round_, _, stored in played:
            for outcome, groups in zip(round_.outcomes, stored, strict=True):
                outcome.groups = groups
        return Round.joined([(round_, share) for round_, share, _ in played], list(by_position))

    async def answer(
        self, samples: Sequence[Sample], asking: Asking, positions: Sequence[int] | None = None
    ) -> Answers:
        """Samples that are not trained, played and scored."""
        asked = dict(zip(positions or range(len(samples)), samples, strict=True))

        def ask(worker: Any, positions: list[int], joint_batches: JointBatches) -> list[Any]:
            share = [asked[position] for position in positions]
            return cluster.split(worker.answer, 1 + 2 * len(share), share, positions, asking, joint_batches)

        answered = await self._divide(list(asked), ask)
        stored = {n: groups for _, share, of in answered for n, groups in zip(share, of, strict=True)}
        of_samples = await asyncio.to_thread(lambda: [_fetched(stored[n]) for n in asked])
        return Answers(of_samples, [failure for failures, _, _ in answered for failure in failures])

    async def _divide(self, positions: Sequence[int], ask: AskFn) -> list[Answered]:
        """Ask each worker for its share of some positions, in batches that all of them make."""
        self._listen()
        name, shares = f"round {next(self._rounds)}", dict[int, list[int]]()
        for position in positions:
            shares.setdefault(self._division.worker_of(position), []).append(position)
        joint_batches = self._division.joint_batches(name, positions) if self._joins else {}
        asked = [
            asyncio.get_running_loop().create_task(
                self._ask(number, share, joint_batches.get(number, {}), ask)
            )
            for number, share in shares.items()
        ]
        try:
            answered = await asyncio.gather(*asked)
        finally:
            for task in asked:
                task.cancel()
        for engine in {engine for of_worker in joint_batches.values() for engine in of_worker}:
            self._policy.actors[engine].end_round.remote(name)
        return answered

    async def _ask(self, number: int, share: list[int], joint_batches: JointBatches, ask: AskFn) -> Answered:
        """A worker's share of a round; begun again if the worker dies, in batches of its own."""
        handle = self._handles[number]
        while True:
            worker = handle.actor
            first, *stored = ask(worker, share, joint_batches)
            try:
                value = await cluster.fetch_async(first)
            except EngineDied as error:
                for engine, joint in joint_batches.items():  # the others must not wait for it
                    self._policy.actors[engine].leave.remote(joint.round, joint.client)
                joint_batches = {}
                await asyncio.to_thread(handle.replace, worker, error)
                continue
            pairs = zip(stored[::2], stored[1::2], strict=True)
            return value, share, [StoredGroups(*references) for references in pairs]

    def pack(
        self, outcomes: Sequence[TicketOutcome], part: slice, options: PackOptions, version: int
    ) -> StepBatch:
        """Have a worker pack a part of all groups of some outcomes for one optimizer step."""
        stored = [_stored(outcome) for outcome in outcomes]
        handle = self._handles[next(self._packs) % len(self._handles)]
        while True:
            worker = handle.actor
            first, *ranks = cluster.split(
                worker.pack, 1 + self._num_ranks, part, options, version, *(each.pickled for each in stored)
            )
            try:
                packed: Packed = cluster.fetch(first)
                frames = tuple(tuple(stored[n].frames for n in numbers) for numbers in packed.outcomes)
                return StoredBatch(tuple(ranks), frames, packed.num_targets)
            except EngineDied as error:
                handle.replace(worker, error)

    def tabulate(
        self, outcomes: Sequence[TicketOutcome], numbers: Sequence[OutcomeNumbers], values: TokenValues
    ) -> list[pa.Table]:
        """Outcomes as tables, their images written, each by the worker that played it, near its frames."""
        shares: dict[int, list[int]] = {}
        for index, outcome in enumerate(outcomes):
            shares.setdefault(self._division.worker_of(outcome.position or 0), []).append(index)
        stored, sent = [_stored(outcome) for outcome in outcomes], cluster.put(values)

        def ask(number: int) -> tuple[Any, Any]:
            worker, share = self._handles[number].actor, shares[number]
            parts = [part for index in share for part in (stored[index].pickled, stored[index].frames)]
            return worker, worker.tabulate.remote([numbers[index] for index in share], sent, *parts)

        asked, tables = {number: ask(number) for number in shares}, list[pa.Table]()
        for number, (worker, answer) in asked.items():
            while True:
                try:
                    found: Tabulated = cluster.fetch(answer)
                    break
                except EngineDied as error:
                    self._handles[number].replace(worker, error)
                    worker, answer = ask(number)
            write_encoded(self._config.run_dir, found.images)
            tables.append(found.table)
        return tables

    def prefetch(self, chosen: Mapping[int, int]) -> None:
        """Have samples of positions prepared, each by its worker; one that dies prepares them when asked."""
        shares: dict[int, dict[int, int]] = {}
        for position, row in chosen.items():
            shares.setdefault(self._division.worker_of(position), {})[position] = row
        for number, share in shares.items():
            self._handles[number].actor.prefetch.remote(share)

    def fetch(self, outcome: TicketOutcome) -> list[Group]:
        """An outcome's groups."""
        return _fetched(_stored(outcome))

    def take_published(self) -> dict[str, float]:
        """What the rewards have published since this was called last."""
        published = []
        workers = [handle.actor for handle in self._handles]
        asked = cluster.begin(workers, "take_published")
        for handle, worker, answer in zip(self._handles, workers, asked, strict=True):
            try:
                published.append(cluster.fetch(answer))
            except EngineDied as error:  # its numbers are lost with it
                handle.replace(worker, error)
        return merged_metrics(published)

    def take_counts(self) -> dict[str, float]:
        """How many workers were replaced since this was called last."""
        before, self._counted = self._counted, summed_counts(m.counts for m in self._handles)
        return {f"failures/{name}": float(self._counted[name] - before[name]) for name in WORKER_COUNTS}

    async def close(self) -> None:
        """Let the workers close what they have opened, then stop them."""
        for task in self._listening:
            task.cancel()
        await asyncio.gather(*self._listening, return_exceptions=True)
        await asyncio.gather(*(handle.close() for handle in self._handles))

    def _listen(self) -> None:
        """Hear each worker's events, as long as the event loop runs."""
        if not self._listening:
            loop = asyncio.get_running_loop()
            self._listening = [loop.create_task(self._hear(handle)) for handle in self._handles]

    async def _hear(self, handle: WorkerHandle) -> None:
        while True:
            worker = handle.actor
            try:
                async for event in cluster.stream(worker.events):
                    if isinstance(event, Lost):
                        await self._renew(event)
                    else:
                        self._tell(event.event, event.text)
            except EngineDied as error:
                await asyncio.to_thread(handle.replace, worker, error)

    async def _renew(self, lost: Lost) -> None:
        """See to an engine in the place of one that a worker has lost.

        All workers are notified: one that left a round at the dead engine must leave it at the next one too.
        """
        engine: Any
        try:
            engine = await self._policy.replace(
                lost.number, lost.dead, EngineDied(lost.reason), lost.num_requests
            )
        except VlrlError as error:  # of any kind: the worker waits for an answer
            engine = error
        for handle in self._handles:
            handle.actor.renewed.remote(lost.number, engine)


def _stored(outcome: TicketOutcome) -> StoredGroups:
    """Where an outcome's groups lie; those that come from a checkpoint are put there first."""
    if not isinstance(outcome.groups, StoredGroups):
        outcome.groups = StoredGroups(*map(cluster.put, separate(outcome.groups)))
    return outcome.groups


def _fetched(stored: StoredGroups) -> list[Group]:
    groups: list[Group] = rejoin(*cluster.fetch_all([stored.pickled, stored.frames]))
    return groups
