"""The vLLM adapter: engines in Ray actors, and their owner."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any

from vlrl import cluster
from vlrl.choices import MachineChoice, merged
from vlrl.config import Config
from vlrl.engine.arguments import engine_environment, further_arguments
from vlrl.engine.client.client import EngineClient
from vlrl.engine.engine import Engine
from vlrl.engine.joint_batches import JointBatches
from vlrl.engine.replica import Replica
from vlrl.engine.requests import EngineRequest, GenerationResult, JointBatch, Load
from vlrl.errors import EngineDied
from vlrl.protocols import Processor
from vlrl.tracking.metrics import ENGINE_COUNTS
from vlrl.types import Generation
from vlrl.weights.manifest import Manifest


class GeneratorActor:
    """A vLLM engine in a process of its own; its calls run side by side and meet in the engine's thread."""

    def __init__(self, *arguments: Any) -> None:
        self._engine = Engine(*arguments)
        self._joint = JointBatches(self._generate_whole)

    async def start(self) -> float:
        """Build the engine; seconds it took."""
        return await asyncio.wrap_future(self._engine.run(self._engine.build))

    async def generate_batch(
        self,
        requests: Sequence[EngineRequest],
        references: Mapping[str, Any],
        joint: JointBatch | None = None,
    ) -> list[Generation]:
        """Generate requests together, with those of the joint batch's other clients if there is one."""
        if joint is not None:
            return await self._joint.join(joint, requests, references)
        return await self._generate_whole(requests, references)

    async def leave(self, round_name: str, client: int) -> None:
        """A client has no more requests of a round, see `JointBatches.leave`."""
        self._joint.leave(round_name, client)

    async def end_round(self, round_name: str) -> None:
        """All clients have left a round."""
        self._joint.end(round_name)

    async def _generate_whole(
        self, requests: Sequence[EngineRequest], references: Mapping[str, Any]
    ) -> list[Generation]:
        """See `Engine.generate_batch`."""
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

        await asyncio.wrap_future(self._engine.submit(requests, references, done))
        for _ in requests:
            yield await results.get()

    async def abort(self, names: Sequence[str]) -> None:
        """Forget requests, see `Engine.abort`."""
        await asyncio.wrap_future(self._engine.abort(names))

    async def update(self, manifest: Manifest, version: int) -> float:
        """Load weights between two steps; seconds for which nothing was generated."""
        return await asyncio.wrap_future(self._engine.run(partial(self._engine.update, manifest, version)))

    async def choices(self) -> list[MachineChoice]:
        """What the engine chose for its machine, see `Engine.choices`."""
        return await asyncio.wrap_future(self._engine.run(self._engine.choices))

    async def sleep(self) -> None:
        """Give the GPUs' memory up until the next `update`, see `Engine.sleep`."""
        await asyncio.wrap_future(self._engine.run(self._engine.sleep))


class VllmPolicy(EngineClient):
    """The owner of a run's engines, and a client of all of them in the same process.

    It starts them, replaces those that die, and gives them new weights.
    """

    def __init__(
        self,
        config: Config,
        processor: Processor,
        reservation: cluster.Reservation | None = None,
    ) -> None:
        """Start the engines, at a reservation's places or on this node; `wait_ready` waits for them."""
        further_arguments(config)  # refused before anything is started
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
                place,
                max_restarts=generator.max_restarts,
                timeout_s=config.weights.timeout_s,
            )
            for number, place in enumerate(reservation.engines if reservation else [here] * num_replicas)
        ]
        self._counted: Counter[str] = Counter()
        super().__init__(config, self._replicas)

    def take_metrics(self) -> dict[str, float]:
        """What `counts` has grown by since this was called last, as metrics."""
        before, self._counted = self._counted, self.counts
        return {f"failures/{name}": float(self._counted[name] - before[name]) for name in ENGINE_COUNTS}

    @property
    def counts(self) -> Counter[str]:
        """`replaced_engines` that had died, and `resubmitted_requests` that were lost with them."""
        return sum((replica.counts for replica in self._replicas), Counter())

    @property
    def actors(self) -> list[Any]:
        """The engines as they are now, for clients in other processes."""
        return [replica.actor for replica in self._replicas]

    async def replace(self, number: int, dead: Any, reason: EngineDied, num_lost: int) -> Any:
        """The engine in a dead one's place, as a client in another process needs it; replaced only once.

        The client has lost num_lost requests with it, and sends them again.

        Raises:
            EngineError: if generator.max_restarts engines were replaced before.
        """
        await self._replicas[number].renew(dead, reason, num_lost)
        return self._replicas[number].actor

    def wait_ready(self) -> float:
        """Block until the engines have started; seconds the slowest took."""
        return max(replica.wait_ready() for replica in self._replicas)

    def choices(self) -> list[MachineChoice]:
        """What the engines chose for their machines, and why; after wait_ready."""
        return merged([replica.choices() for replica in self._replicas], "engine")

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
