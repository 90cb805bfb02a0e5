"""The vLLM engine and the one thread that may touch it: a whole batch at a time, or request by request.

The thread's loop: do what was asked for (admit, abort, update, generate a whole batch), then let vLLM take
one step with whatever runs and answer each request that is done. A second thread prepares the images of
requests that join others, so that those go on meanwhile.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from vlrl.choices import MachineChoice
from vlrl.config import Config
from vlrl.engine.arguments import engine_arguments, model_has_state
from vlrl.engine.choices import engine_choices
from vlrl.engine.client.shared_media import fetch_media
from vlrl.engine.cpu.kernels import choose_kernels
from vlrl.engine.lora import adapter_arguments, adapter_requests, require_places
from vlrl.engine.patches import correct_videos, keep_images_of_cached_prompts
from vlrl.engine.requests import (
    EngineRequest,
    GenerationResult,
    Load,
    generation_of,
    prompt_of,
    sampling_params,
)
from vlrl.engine.structured import prepare_structured
from vlrl.errors import EngineError
from vlrl.ledger import ExpertArray
from vlrl.model.lora import adapter_targets, sent_alone
from vlrl.model.meta_model import empty_model
from vlrl.process.imports import large_imports
from vlrl.types import Generation
from vlrl.weights.manifest import Manifest

T = TypeVar("T")


class Engine:
    """A vLLM engine in a thread of its own.

    All of vLLM but its renderer is called from that thread, between two steps of the engine: what `run` is
    given sees no request half done.
    """

    def __init__(
        self,
        config: Config,
        banned_token_ids: Sequence[int],
        stop_token_ids: Sequence[int],
        engine_options: Mapping[str, Any],
        number: int = 0,
        takes_turns: bool = False,
    ) -> None:
        """Make the engine with this number among the run's; does it take turns with a trainer on its GPUs?"""
        self._config, self._number = config, number
        given = (config, list(banned_token_ids), dict(engine_options))
        self._arguments = partial(engine_arguments, *given, takes_turns=takes_turns, begins_empty=True)
        self._stop_token_ids, self._sleeps, self._records_experts = list(stop_token_ids), False, False
        self._lora, self._is_empty = sent_alone(config), True
        self._adapters: Sequence[Any] = ()
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._running: dict[str, tuple[EngineRequest, Callable[[GenerationResult], None]]] = {}
        self._preparer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="prepare")
        threading.Thread(target=self._serve, name="engine", daemon=True).start()

    def run(self, job: Callable[[], T]) -> Future[T]:
        """Call `job` in the engine's thread between two steps, after the jobs before it."""
        future: Future[T] = Future()
        self._jobs.put((job, future))
        return future

    def submit(
        self,
        requests: Sequence[EngineRequest],
        references: Mapping[str, Any],
        done: Callable[[int, GenerationResult], None],
    ) -> Future[None]:
        """Prepare requests while others run, then queue them beside those.

        Args:
            requests: what to generate.
            references: sha256 → reference of every medium the requests name.
            done: called with a request's index and its result, in the engine's thread.
        """
        return self._prepared(
            lambda: partial(self.admit, requests, self._rendered(requests, references), done)
        )

    def abort(self, names: Sequence[str]) -> Future[None]:
        """Forget requests, after those submitted before; those that are done already are not an error."""
        return self._prepared(lambda: partial(self._give_up, names))

    def _prepared(self, prepare: Callable[[], Callable[[], T]]) -> Future[T]:
        """Prepare a job after those that are being prepared, and run it in the engine's thread."""
        future: Future[T] = Future()

        def hand_over() -> None:
            try:
                self._jobs.put((prepare(), future))
            except Exception as error:  # handed on to whoever waits
                future.set_exception(error)

        self._preparer.submit(hand_over)
        return future

    def _rendered(self, requests: Sequence[EngineRequest], references: Mapping[str, Any]) -> list[Any]:
        """Each request's prompt with its images as the model takes them; requests may share one.

        `skip_mm_cache`: every prompt has its pixels. vLLM's other cache leaves out those that it has sent
        before, which the engine lacks if a request was given up, or other prompts were admitted, in between.
        """
        media = fetch_media(references)
        rendered: dict[Any, Any] = {}
        for request in requests:
            key = (request.engine_ids.tobytes(), request.media)
            if key not in rendered:
                prompts = [prompt_of(request, media)]
                [rendered[key]] = self._engine.renderer.render_cmpl(prompts, skip_mm_cache=True)
        return [rendered[request.engine_ids.tobytes(), request.media] for request in requests]

    # What follows runs in the engine's thread, as a job.

    def build(self) -> float:
        """Start vLLM; seconds it took."""
        begin = time.perf_counter()
        with large_imports():
            import torch
            from vllm import EngineArgs
            from vllm.v1.engine.llm_engine import LLMEngine

        on_gpu = torch.cuda.is_available()
        self._records_experts = self._config.generator.routing_replay and not on_gpu
        keep_images_of_cached_prompts()
        if not on_gpu:
            choose_kernels()
        arguments = self._arguments(on_gpu=on_gpu, has_state=model_has_state(self._config))
        if self._lora is not None:
            targets = adapter_targets(empty_model(self._config), self._lora)
            policies = tuple(self._config.policies)
            arguments |= adapter_arguments(self._lora, targets, arguments, max(1, len(policies)))
        self._engine = LLMEngine.from_engine_args(EngineArgs(**arguments))
        correct_videos(self._engine)
        if self._lora is not None:
            missing = self._engine.collective_rpc("open_adapters", args=(targets, policies))
            require_places(missing[0], self._config.model.path)
            self._adapters = adapter_requests(policies)
        if self._records_experts:
            self._engine.collective_rpc("record_experts")
        prepare_structured(self._engine, self._config)
        self._engine.set_weight_version("0")
        if self._config.generator.tensor_parallel_size == 1:
            self._engine.collective_rpc("remove_rendezvous")
        return time.perf_counter() - begin

    def choices(self) -> list[MachineChoice]:
        """What this engine chose for its machine, and why."""
        unknown = self._engine.collective_rpc("unknown_lora_products")[0] if self._lora is not None else ""
        return engine_choices(self._engine.vllm_config, unknown)

    def generate_batch(
        self, requests: Sequence[EngineRequest], references: Mapping[str, Any]
    ) -> list[Generation]:
        """Submit requests whole and step to their end; nothing else is done meanwhile.

        So the engine's batches, and with them the last bits of its float32 results, depend on nothing but the
        requests (law 8). If all of them begin episodes, nothing is left in its caches of other rounds: a run
        that is resumed has not computed what an evaluation or a parity check did before.

        Raises:
            EngineError: if the engine expanded a prompt otherwise than the processor (law 3).
        """
        results: dict[int, GenerationResult] = {}
        if not self._is_empty and not self._running and all(request.begins for request in requests):
            self._forget()
        self.admit(requests, self._rendered(requests, references), results.__setitem__)
        try:
            while self._engine.has_unfinished_requests():
                self._step()
                for result in results.values():
                    if isinstance(result, Exception):
                        raise result
        except Exception:  # whatever it was, nothing of this batch may run on into the next
            self._give_up([request.name for request in requests])
            raise
        return [result for _, result in sorted(results.items()) if isinstance(result, Generation)]

    def admit(
        self,
        requests: Sequence[EngineRequest],
        prompts: Sequence[Any],
        done: Callable[[int, GenerationResult], None],
    ) -> None:
        """Queue requests, whose prompts are rendered, beside those that run.

        Raises:
            EngineError: if the engine sleeps.
        """
        if self._sleeps:
            raise EngineError(
                "a request reached an engine while the trainer had its GPUs; report this with your config"
            )
        self._is_empty = False
        try:
            for index, (request, prompt) in enumerate(zip(requests, prompts, strict=True)):
                params = sampling_params(request, self._stop_token_ids)
                adapter = self._adapters[request.policy] if self._adapters else None
                self._engine.add_request(request.name, prompt, params, lora_request=adapter)
                self._running[request.name] = (request, partial(done, index))
        except Exception:  # all or none
            self._give_up([request.name for request in requests])
            raise

    def update(self, manifest: Manifest, version: int) -> float:
        """Replace all weights, or the adapter; forget what the old ones computed (law 6); seconds it took.

        Requests that run are kept: their tokens so far are computed again under the new weights, images
        included, before they go on, so that every token is sampled from the policy of its version alone.
        """
        begin = time.perf_counter()
        self._forget(reset_running_requests=True)
        if self._sleeps:
            self._engine.wake_up(["weights"])
        first_member = 1 + self._number * self._config.generator.tensor_parallel_size
        self._engine.collective_rpc("receive_weights", args=(manifest, first_member, self._lora))
        if self._sleeps:
            self._engine.wake_up(["kv_cache"])
            self._sleeps = False
        self._engine.set_weight_version(str(version))
        return time.perf_counter() - begin

    def sleep(self) -> None:
        """Give the GPUs' memory up, weights and KV cache, until the next `update`.

        Requests that run are kept, as `update` keeps them. Where only adapters are sent, the model's weights
        go to host memory: nobody would bring them again.
        """
        self._engine.sleep(level=2 if self._lora is None else 1, mode="keep")
        self._sleeps = True

    def load(self) -> Load:
        """How busy the engine is now."""
        scheduler = self._engine.engine_core.engine_core.scheduler
        return Load(float(scheduler.kv_cache_manager.usage), len(scheduler.waiting))

    def _serve(self) -> None:
        while True:
            self._do_jobs()
            try:
                self._step()
            except Exception as error:  # handed on to everybody who waits for the engine
                self._drop(list(self._running), error)

    def _do_jobs(self) -> None:
        """Everything that was asked for; waits for it while there is nothing to step."""
        while not self._running or self._sleeps or not self._jobs.empty():
            job, future = self._jobs.get()
            try:
                future.set_result(job())
            except Exception as error:
                future.set_exception(error)

    def _step(self) -> None:
        for output in self._engine.step():
            if output.finished and output.request_id in self._running:
                request, done = self._running.pop(output.request_id)
                try:
                    result: GenerationResult = generation_of(output, request, self._experts_of(request))
                except Exception as error:  # handed on to whoever waits for it
                    result = error
                done(result)

    def _experts_of(self, request: EngineRequest) -> ExpertArray | None:
        """What was recorded of a request that is done; None where vLLM returns it, or nobody asked."""
        if not self._records_experts:
            return None
        return self._engine.collective_rpc("take_experts", args=([request.name],))[0][0]  # type: ignore[no-any-return]

    def _forget(self, *, reset_running_requests: bool = False) -> None:
        if not self._engine.reset_prefix_cache(reset_running_requests=reset_running_requests):
            raise EngineError("the engine could not reset its prefix cache; report this with your config")
        self._engine.reset_encoder_cache()
        self._is_empty = not self._running

    def _give_up(self, names: Sequence[str]) -> None:
        self._drop(names, EngineError("the request was given up"))

    def _drop(self, names: Sequence[str], reason: Exception) -> None:
        dropped = {name: self._running.pop(name) for name in names if name in self._running}
        if dropped:
            self._engine.abort_request(list(dropped))
        for _, done in dropped.values():
            done(reason)
