"""The vLLM adapter: engines in Ray actors, and their owner."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any

from vlrl import cluster
from vlrl.choices import MachineChoice, merged
from vlrl.config import Config
from vlrl.engine.api.options import TOKEN_VARIABLE
from vlrl.engine.arguments import engine_environment, further_arguments
from vlrl.engine.client.client import EngineClient
from vlrl.engine.engine import Engine
from vlrl.engine.external.actor import ServerActor
from vlrl.engine.joint_batches import EngineActor
from vlrl.engine.replica import Replica
from vlrl.engine.requests import EngineRequest, GenerationResult, Load
from vlrl.errors import EngineDied
from vlrl.process.imports import large_imports
from vlrl.protocols import Processor
from vlrl.tracking.metrics import ENGINE_COUNTS
from vlrl.types import Generation
from vlrl.weights.manifest import Manifest


def import_vllm() -> None:
    """Import what an engine is built of, which takes longer than building it."""
    with large_imports():
        import vllm.v1.engine.llm_engine  # noqa: F401


class GeneratorActor(EngineActor):
    """A vLLM engine in a process of its own; its calls run side by side and meet in the engine's thread."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__()
        self._engine = Engine(*arguments)
        self._engine.run(import_vllm)  # what fails there fails again in `start`

    async def start(self) -> float:
        """Build the engine; seconds it took."""
        return await asyncio.wrap_future(self._engine.run(self._engine.build))

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
        """Start the engines' processes at a reservation's places, or on this node: they import until `start`.

        With generator.servers nothing is started but an actor for each, which speaks to it.
        """
        further_arguments(config)  # refused before anything is started
        generator = config.generator
        num_replicas = len(generator.servers) or generator.num_replicas or 1
        here = cluster.driver_place(num_replicas, 0 if generator.servers else generator.cpus)
        takes_turns = reservation is not None and reservation.layout.takes_turns
        engine = (config, processor.banned_token_ids, processor.stop_token_ids, processor.engine_options)

        def spawn(number: int, place: cluster.Place) -> Any:
            if generator.servers:
                token = {TOKEN_VARIABLE: os.environ.get(TOKEN_VARIABLE, "")}
                return cluster.spawn(ServerActor, *engine, number, place=place, env=token)
            env = engine_environment(config, on_gpu=bool(place.gpus))
            return cluster.spawn(GeneratorActor, *engine, number, takes_turns, place=place, env=env)

        places = (reservation.engines if reservation else ()) or [here] * num_replicas
        self._replicas = [
            Replica(
                partial(spawn, number, place),
                place,
                max_restarts=generator.max_restarts,
                timeout_s=config.weights.timeout_s,
            )
            for number, place in enumerate(places)
        ]
        self._counted: Counter[str] = Counter()
        super().__init__(config, self._replicas)

    def start(self) -> None:
        """Have the engines load the model in the background; without this, `wait_ready` does."""
        for replica in self._replicas:
            replica.start()

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
        """Block until the engines have started; seconds the slowest took, imports before `start` apart."""
        self.start()
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
