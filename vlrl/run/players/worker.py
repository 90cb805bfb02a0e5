"""A rollout worker: plays tickets in a process of its own, and keeps their groups out of the driver's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from vlrl.batch import Frames, TokenValues, media_in, num_targets
from vlrl.cluster.frames import rejoin, separate
from vlrl.config import Config
from vlrl.engine.client.client import EngineClient
from vlrl.engine.client.link import RemoteLink, Renewals
from vlrl.engine.requests import JointBatch
from vlrl.errors import VlrlError
from vlrl.packing.minibatch import packed_part
from vlrl.packing.options import PackOptions
from vlrl.rollout.buffer import Ticket
from vlrl.rollout.outcome import TicketOutcome
from vlrl.run.players.division import Division
from vlrl.run.players.heldout import Asking
from vlrl.run.players.player import open_player
from vlrl.run.players.rollouts import GenerateFn
from vlrl.run.players.tables import OutcomeNumbers, Tabulated, tabulated
from vlrl.storage.shared_folder import SharedFile
from vlrl.tracking.timeline import Timeline
from vlrl.types import Group, Sample


@dataclass(frozen=True, slots=True)
class WorkerEvent:
    """A worker's event: its name and a sentence."""

    event: str
    text: str


@dataclass(frozen=True, slots=True)
class Lost:
    """An engine that a worker found dead.

    Attributes:
        number: of the engine.
        dead: its actor.
        reason: why it died.
        num_requests: of this worker that were lost with it.
    """

    number: int
    dead: Any
    reason: str
    num_requests: int


@dataclass(frozen=True, slots=True)
class Packed:
    """What the driver is to know of a packed batch.

    Attributes:
        num_targets: trained tokens of all ranks.
        outcomes: for each rank the numbers of the outcomes whose frames it needs.
    """

    num_targets: int
    outcomes: tuple[tuple[int, ...], ...]


class RolloutWorker:
    """Sample → roll out → score → advantage → filter for the tickets it is given; the driver gets numbers.

    Consumes: tickets. Waits for: engines. Unblocked by: their answers, or `renewed` if one has died.
    """

    def __init__(
        self,
        config: Config,
        number: int,
        division: Division,
        engines: Sequence[Any],
        run_file: SharedFile | None = None,
    ) -> None:
        """Do nothing yet.

        Args:
            config: the whole run's.
            number: of this worker.
            division: what is whose.
            engines: actors of all engines.
            run_file: a file of the driver's in the run's folder.
        """
        self._number, self._division, self._run_file = number, division, run_file
        self._config = division.share_of(config, number)
        self._events: asyncio.Queue[WorkerEvent | Lost] = asyncio.Queue()
        self._renewals = Renewals(lambda *lost: self._events.put_nowait(Lost(*lost)))
        self._links = [RemoteLink(n, actor, self._renewals) for n, actor in enumerate(engines)]
        self._left: Mapping[int, JointBatch] = {}
        self._stack = AsyncExitStack()

    async def start(self) -> float:
        """Open data, processor, rewards and environments; seconds it took."""
        begin, config, number = time.perf_counter(), self._config, self._number
        loop = asyncio.get_running_loop()

        def tell(event: str, text: str) -> None:  # from the threads that prepare samples
            loop.call_soon_threadsafe(self._events.put_nowait, WorkerEvent(event, text))

        self._client = EngineClient(
            config,
            self._links,
            name=f"worker{number}/",
            engines=self._division.engines_of(number),
            num_sharing=self._division.num_sharing(number),
        )
        self._player = open_player(
            config,
            self._client,
            Timeline.of_run(config, resumed=True),
            self._stack,
            owns=lambda position: self._division.worker_of(position) == number,
            tell=tell,
            policy_of=self._client.of_position,
        )
        return time.perf_counter() - begin

    async def play(
        self,
        generate: GenerateFn,
        tickets: Sequence[Ticket[TicketOutcome]],
        joint_batches: Mapping[int, JointBatch],
    ) -> list[Any]:
        """What tickets become: a `Round` without groups, then of each ticket its groups and their frames.

        The groups are pickled by `vlrl.cluster.frames`, and the frames apart from them: pixels go from here
        to the ranks that train on them, and by no other process.

        Args:
            generate: what tickets become.
            tickets: to be played together.
            joint_batches: by engine, what the tickets' requests are part of.
        """
        with self._joining(joint_batches):
            round_ = await generate(self._player, tickets)
        stored: list[Any] = []
        for outcome in round_.outcomes:
            stored += self._stored(outcome.groups)
            outcome.groups = None
        return [round_, *stored]

    async def answer(
        self,
        samples: Sequence[Sample],
        positions: Sequence[int],
        asking: Asking,
        joint_batches: Mapping[int, JointBatch],
    ) -> list[Any]:
        """Samples that are not trained: failures of scoring, then each sample's groups as `play` has them."""
        with self._joining(joint_batches):
            answers = await self._player.answer(samples, positions, asking)
        return [answers.failures, *(part for groups in answers.of_samples for part in self._stored(groups))]

    async def prefetch(self, chosen: Mapping[int, int]) -> None:
        """Begin with samples of positions whose rows an adaptive sampler chose."""
        self._player.stream.prefetch(chosen)

    async def pack(self, part: slice, options: PackOptions, version: int, *outcomes: bytes) -> list[Any]:
        """Pack a part of the outcomes' groups, which are pickled: `Packed`, then the part of each rank."""
        return await asyncio.to_thread(_packed, part, options, version, outcomes)

    async def tabulate(
        self, numbers: Sequence[OutcomeNumbers], values: TokenValues, *outcomes: bytes | Frames
    ) -> Tabulated:
        """Some outcomes as a table: of each its groups and their frames, see `play`."""
        return await asyncio.to_thread(self._tabulate, numbers, values, outcomes)

    def _tabulate(
        self, numbers: Sequence[OutcomeNumbers], values: TokenValues, outcomes: Sequence[Any]
    ) -> Tabulated:
        of_outcomes = [rejoin(*parts) for parts in zip(outcomes[::2], outcomes[1::2], strict=True)]
        processor = self._player.context.processor
        return tabulated(of_outcomes, numbers, values, processor, self._config.run_dir, self._run_file)

    async def take_published(self) -> dict[str, float]:
        """What the rewards have published since this was called last."""
        return self._player.reward.take_metrics()

    async def events(self) -> AsyncIterator[WorkerEvent | Lost]:
        """What the driver is to know, or to do, as it happens; without an end."""
        while True:
            yield await self._events.get()

    async def renewed(self, number: int, engine: Any | VlrlError) -> None:
        """An engine in place of one that was lost, or why there is none."""
        if not isinstance(engine, VlrlError):
            self._links[number].actor = engine
            if number in self._left:  # whoever left the dead one's round has left this one's too
                self._leave(number)
        self._renewals.arrived(number, engine)

    async def close(self) -> None:
        """Close environments and rewards."""
        await self._stack.aclose()

    def _stored(self, groups: Any) -> tuple[bytes, Frames]:
        """Groups as they go into shared memory, where the frames that engines were sent need not lie too."""
        pickled, frames = separate(groups)
        self._client.media.release(frames)
        return pickled, frames

    @contextmanager
    def _joining(self, joint_batches: Mapping[int, JointBatch]) -> Iterator[None]:
        """The requests of the block are part of these batches, which the worker leaves after it."""
        self._left, self._client.joint_batches = {}, dict(joint_batches)
        try:
            yield
        finally:
            self._left, self._client.joint_batches = joint_batches, {}
            for number in joint_batches:
                self._leave(number)

    def _leave(self, number: int) -> None:
        joint = self._left[number]
        self._links[number].actor.leave.remote(joint.round, joint.client)


def _packed(part: slice, options: PackOptions, version: int, outcomes: Sequence[bytes]) -> list[Any]:
    groups: list[Group] = []
    outcome_of: dict[str, int] = {}
    """By sha256 of a medium: one of the outcomes that show it."""
    for number, pickled in enumerate(outcomes):
        of_outcome: list[Group] = rejoin(pickled)
        groups += of_outcome
        media = [m for group in of_outcome for t in group.trajectories for m in t.media]
        outcome_of |= {medium.sha256: number for medium in media}
    batch = packed_part(groups, part, options, version)
    needed = tuple(tuple(sorted({outcome_of[m.sha256] for m in media_in(of_rank)})) for of_rank in batch)
    return [Packed(num_targets(batch), needed), *batch]
