"""The vLLM adapter: engines in Ray actors, and the Policy that talks to them."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from vlrl import cluster
from vlrl.choices import MachineChoice, merged
from vlrl.config import Config
from vlrl.engine.admission import AdmissionQueue
from vlrl.engine.arguments import engine_environment
from vlrl.engine.engine import Engine
from vlrl.engine.replica import Replica
from vlrl.engine.requests import EngineRequest, GenerationResult, Load
from vlrl.engine.router import Router
from vlrl.engine.shared_media import SharedMedia
from vlrl.protocols import Processor
from vlrl.rollout.groups import require_room
from vlrl.rollout.session import Session
from vlrl.tracking.metrics import ENGINE_COUNTS
from vlrl.types import Generation, Media, Sampling
from vlrl.weights.manifest import Manifest

MEDIA_SHARE = 0.5
"""Share of Ray's object store that media may keep; the rest passes requests and batches."""


class GeneratorActor:
    """A vLLM engine in a process of its own; its calls run side by side and meet in the engine's thread."""

    def __init__(self, *arguments: Any) -> None:
        self._engine = Engine(*arguments)

    async def start(self) -> float:
        """Build the engine; seconds it took."""
        return await asyncio.wrap_future(self._engine.run(self._engine.build))

    async def generate_batch(
        self, requests: Sequence[EngineRequest], references: Mapping[str, Any]
    ) -> list[Generation]:
        """Generate requests together, see `Engine.generate_batch`."""
        return await asyncio.wrap_future(
            self._engine.run(partial(self._engine.generate_batch, requests, references))
        )

    async def generate(
        self, requests: Sequence[EngineRequest], references: Mapping[str, Any]
    ) -> AsyncIterator[tuple[int, GenerationResult, Load]]:
        """Generate requests beside those that run: each one's index and result as soon as it is done."""
        loop, results = asyncio.get_running_loop(), asyncio.Queue[tuple[int, GenerationResult, Load]]()

        def done(index: int, result: GenerationResult) -> None:
            loop.call_soon_threadsafe(results.put_nowait, (index, result, self._engine.load()))

        admit = partial(self._engine.admit, requests, references, done)
        await asyncio.wrap_future(self._engine.run(admit))
        for _ in requests:
            yield await results.get()

    async def abort(self, names: Sequence[str]) -> None:
        """Forget requests, see `Engine.abort`."""
        await asyncio.wrap_future(self._engine.run(partial(self._engine.abort, names)))

    async def update(self, manifest: Manifest, version: int) -> float:
        """Load weights between two steps; seconds for which nothing was generated."""
        return await asyncio.wrap_future(self._engine.run(partial(self._engine.update, manifest, version)))

    async def choices(self) -> list[MachineChoice]:
        """What the engine chose for its machine, see `Engine.choices`."""
        return await asyncio.wrap_future(self._engine.run(self._engine.choices))

    async def sleep(self) -> None:
        """Give the GPUs' memory up until the next `update`, see `Engine.sleep`."""
        await asyncio.wrap_future(self._engine.run(self._engine.sleep))


class VllmPolicy:
    """A `vlrl.protocols.Policy` on one or several engines.

    The sessions of one event-loop turn are sent together. In batches they are generated together and nothing
    else meanwhile; in continuous mode they join what runs, and each is answered as it is done.
    """

    def __init__(
        self, config: Config, processor: Processor, reservation: cluster.Reservation | None = None
    ) -> None:
        """Start the engines, at a reservation's places or on this node; `wait_ready` waits for them."""
        generator = config.generator
        num_replicas = generator.num_replicas or 1
        here = cluster.driver_place(num_replicas, generator.cpus)
        takes_turns = reservation is not None and reservation.layout.takes_turns
        engine = (config, processor.banned_token_ids, processor.stop_token_ids, processor.engine_options)
        self._replicas = [
            Replica(
                partial(
                    cluster.spawn,
                    GeneratorActor,
                    *engine,
                    number,
                    takes_turns,
                    place=place,
                    env=engine_environment(config, on_gpu=bool(place.gpus)),
                ),
                max_restarts=generator.max_restarts,
                timeout_s=config.weights.timeout_s,
            )
            for number, place in enumerate(reservation.engines if reservation else [here] * num_replicas)
        ]
        self._gates = [
            AdmissionQueue[_Ask](generator.max_concurrency, generator.max_num_seqs) for _ in self._replicas
        ]
        self._router = Router(num_replicas)
        self._whole_waves = generator.mode == "batch"
        self._max_model_len = generator.max_model_len
        self._shared = SharedMedia(int(MEDIA_SHARE * config.ray.object_store_gib * 2**30))
        self._waiting: list[tuple[Session, Sampling, asyncio.Future[Generation]]] = []
        self._sending: set[asyncio.Task[None]] = set()
        self._num_requests = 0
        self._counted: Counter[str] = Counter()

    @property
    def counts(self) -> Counter[str]:
        """`replaced_engines` that had died, and `resubmitted_requests` that were lost with them."""
        return sum((replica.counts for replica in self._replicas), Counter())

    def take_metrics(self) -> dict[str, float]:
        """What `counts` has grown by since this was called last, as metrics."""
        before, self._counted = self._counted, self.counts
        return {f"failures/{name}": float(self._counted[name] - before[name]) for name in ENGINE_COUNTS}

    def wait_ready(self) -> float:
        """Block until the engines have started; seconds the slowest took."""
        return max(replica.wait_ready() for replica in self._replicas)

    def choices(self) -> list[MachineChoice]:
        """What the engines chose for their machines, and why; after wait_ready."""
        return merged([replica.choices() for replica in self._replicas], "engine")

    async def generate(self, session: Session, sampling: Sampling) -> Generation:
        """Generate the session's next action."""
        require_room(session.sample.id, len(session.token_ids), sampling.max_tokens, self._max_model_len)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Generation] = loop.create_future()
        self._waiting.append((session, sampling, future))
        if len(self._waiting) == 1:
            loop.call_soon(self._send)
        return await future

    def load_weights(self, manifest: Manifest, version: int) -> float:
        """Put weights into every engine under `version`; seconds for which the slowest generated nothing.

        Requests that run go on under the new weights. Blocks: within an event loop await `update`.

        Raises:
            EngineError: if it takes longer than weights.timeout_s.
        """
        return max([wait() for wait in [r.send_weights(manifest, version) for r in self._replicas]])

    def sleep(self) -> None:
        """Give the GPUs' memory up for the trainer; `load_weights` wakes the engines again."""
        cluster.fetch_all([replica.actor.sleep.remote() for replica in self._replicas])

    async def update(self, manifest: Manifest, version: int) -> float:
        """`load_weights` in the middle of requests, which the event loop goes on serving."""
        return await asyncio.to_thread(self.load_weights, manifest, version)

    def close(self) -> None:
        """Stop the engines' processes."""
        for replica in self._replicas:
            replica.close()

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, []
        shares: defaultdict[int, list[_Ask]] = defaultdict(list)
        for session, sampling, future in waiting:
            number = self._router.place(session)
            shares[number].append(_Ask(self._request(session, sampling), session.media, future))
        for number, asks in shares.items():
            self._start(number, asks if self._whole_waves else self._gates[number].enter(asks))

    def _request(self, session: Session, sampling: Sampling) -> EngineRequest:
        self._num_requests += 1
        return EngineRequest(
            name=str(self._num_requests),
            sample_id=session.sample.id,
            engine_ids=np.asarray(session.engine_ids),
            expected_ids=np.asarray(session.token_ids),
            media=tuple(m.sha256 for m in session.media),
            sampling=sampling,
        )

    def _start(self, number: int, asks: Sequence[_Ask]) -> None:
        if asks:
            task = asyncio.get_running_loop().create_task(self._generate(number, asks))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _generate(self, number: int, asks: Sequence[_Ask]) -> None:
        """Have a replica generate what is asked; whatever happens, everybody who asks is answered."""
        replica, unanswered = self._replicas[number], dict(enumerate(asks))
        try:
            references = self._shared.references(medium for ask in asks for medium in ask.media)
            requests = [ask.request for ask in asks]
            if not self._whole_waves:
                for ask in asks:
                    ask.abort_if_cancelled(replica)
            async for index, result, load in replica.generate(requests, references, whole=self._whole_waves):
                self._answer(number, unanswered.pop(index), result, load)
        except Exception as error:  # handed on to every session that was part of this
            for ask in unanswered.values():
                self._answer(number, ask, error, None)
        except asyncio.CancelledError:  # the event loop ends
            for ask in unanswered.values():
                replica.abort(ask.request.name)
                ask.future.cancel()
                self._leave(number, None)
            raise

    def _answer(self, number: int, ask: _Ask, result: GenerationResult, load: Load | None) -> None:
        self._start(number, self._leave(number, load))
        if ask.future.done():  # an episode over its time no longer waits
            return
        if isinstance(result, Exception):
            ask.future.set_exception(result)
        else:
            ask.future.set_result(result)

    def _leave(self, number: int, load: Load | None) -> list[_Ask]:
        """Whoever may go next, now that one of the replica's requests is done."""
        self._router.leave(number)
        if self._whole_waves:
            return []
        queue = self._gates[number]
        return queue.leave(load.kv_usage, load.num_waiting) if load else queue.leave(None)


@dataclass(frozen=True, slots=True)
class _Ask:
    """A request and who waits for it."""

    request: EngineRequest
    media: Sequence[Media]
    future: asyncio.Future[Generation]

    def abort_if_cancelled(self, replica: Replica) -> None:
        """Let the engine forget the request as soon as nobody waits for it."""
        self.future.add_done_callback(lambda f: replica.abort(self.request.name) if f.cancelled() else None)
