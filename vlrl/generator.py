"""The vLLM adapter: an engine in a Ray actor, and the Policy that talks to it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from vlrl import cluster
from vlrl.config import Config
from vlrl.errors import EngineError
from vlrl.processors.video_metadata import video_metadata
from vlrl.protocols import Processor
from vlrl.rollout import require_room
from vlrl.session import Session
from vlrl.shared_media import SharedMedia, fetch_media
from vlrl.types import Generation, IntArray, Media, Sampling, VersionSpan
from vlrl.weights import Manifest

MEDIA_SHARE = 0.5
"""Share of Ray's object store that media may keep; the rest passes requests and batches."""


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """One action to draw. Media are named by hash; each lies in shared memory once."""

    sample_id: str
    engine_ids: IntArray
    expected_ids: IntArray
    media: tuple[str, ...]
    sampling: Sampling


class GeneratorActor:
    """Owns a vLLM engine in its own process and steps it; one call draws one wave of requests.

    A wave is submitted whole before the first engine step, so that the engine's batches, and with them the
    last bits of its float32 results, depend on nothing but the requests (law 8).
    """

    def __init__(
        self,
        config: Config,
        banned_token_ids: Sequence[int],
        stop_token_ids: Sequence[int],
        engine_options: Mapping[str, Any],
    ) -> None:
        self._config = config
        self._banned_token_ids = list(banned_token_ids)
        self._stop_token_ids = list(stop_token_ids)
        self._engine_options = dict(engine_options)
        self._num_requests = 0

    def start(self) -> float:
        """Build the engine; seconds it took."""
        begin = time.perf_counter()
        import torch
        from vllm import EngineArgs
        from vllm.v1.engine.llm_engine import LLMEngine

        config, generator = self._config, self._config.generator
        self._engine = LLMEngine.from_engine_args(
            EngineArgs(
                model=config.model.path,
                dtype=config.model.dtype,
                seed=config.run.seed,
                max_model_len=generator.max_model_len,
                max_num_seqs=generator.max_num_seqs,
                max_num_batched_tokens=generator.max_num_batched_tokens,
                gpu_memory_utilization=generator.gpu_memory_utilization,
                tensor_parallel_size=generator.tensor_parallel_size,
                enforce_eager=generator.enforce_eager,
                enable_prefix_caching=True,
                # vLLM rewinds a seeded generator after a partial prefill; a CPU one cannot be rewound.
                enable_chunked_prefill=torch.cuda.is_available(),
                generation_config="vllm",  # nothing hidden: no sampling defaults from the model's folder
                logprobs_mode="processed_logprobs",  # of the distribution that was drawn from
                logits_processors=["vlrl.generator_bans:MediaTokenBan"],
                additional_config={"banned_token_ids": self._banned_token_ids},
                mm_processor_kwargs=self._engine_options,
                trust_remote_code=config.processor.trust_remote_code,
                worker_extension_cls="vlrl.weights.WeightReceiver",
                disable_log_stats=True,
            )
        )
        self._engine.set_weight_version("0")
        return time.perf_counter() - begin

    def generate(self, requests: Sequence[EngineRequest], references: Mapping[str, Any]) -> list[Generation]:
        """Draw a wave.

        Args:
            requests: what to draw.
            references: sha256 → reference of every medium the requests name.

        Raises:
            EngineError: if the engine expanded a prompt otherwise than the processor (law 3).
        """
        by_id: dict[str, int] = {}
        media = fetch_media(references)
        try:
            self._submit(requests, media, by_id)
            drawn: list[Generation | None] = [None] * len(requests)
            while self._engine.has_unfinished_requests():
                for output in self._engine.step():
                    if output.finished:
                        index = by_id[output.request_id]
                        drawn[index] = _generation(output, requests[index])
        except Exception:  # whatever it was, nothing of this wave may run on into the next
            self._engine.abort_request(list(by_id))
            raise
        return [g for g in drawn if g is not None]

    def _submit(
        self, requests: Sequence[EngineRequest], media: Mapping[str, Media], by_id: dict[str, int]
    ) -> None:
        """Queue a wave, rendering each distinct prompt once, and note each request's index under its id."""
        rendered: dict[Any, Any] = {}
        for index, request in enumerate(requests):
            key = (request.engine_ids.tobytes(), request.media)
            if key not in rendered:
                rendered[key] = self._render(request, media)
            request_id = str(self._num_requests)
            self._num_requests += 1
            by_id[request_id] = index
            self._engine.add_request(request_id, rendered[key], self._params(request.sampling))

    def load_weights(self, manifest: Manifest, version: int) -> None:
        """Replace all weights by the segment's and forget everything computed with the old ones (law 6)."""
        self._engine.collective_rpc("receive_weights", args=(manifest,))
        self._engine.reset_mm_cache()
        self._engine.reset_encoder_cache()
        if not self._engine.reset_prefix_cache():
            raise EngineError("the engine could not reset its prefix cache while requests were running")
        self._engine.set_weight_version(str(version))

    def _render(self, request: EngineRequest, media: Mapping[str, Media]) -> Any:
        prompt: dict[str, Any] = {"prompt_token_ids": request.engine_ids.tolist()}
        data: dict[str, list[Any]] = {}
        uuids: dict[str, list[str]] = {}
        for sha256 in request.media:
            medium = media[sha256]
            data.setdefault(medium.kind, []).append(_engine_item(medium))
            uuids.setdefault(medium.kind, []).append(sha256)
        if data:
            prompt |= {"multi_modal_data": data, "multi_modal_uuids": uuids}
        return self._engine.renderer.render_cmpl([prompt])[0]

    def _params(self, sampling: Sampling) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        return SamplingParams(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            max_tokens=sampling.max_tokens,
            seed=sampling.seed,
            stop_token_ids=self._stop_token_ids,
            ignore_eos=True,  # stop tokens are the processor's alone
            logprobs=0,
            flat_logprobs=True,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )


class VllmPolicy:
    """A `vlrl.protocols.Policy`: gathers the sessions of one event-loop turn into one wave."""

    def __init__(self, config: Config, processor: Processor) -> None:
        self._actor = cluster.spawn(
            GeneratorActor,
            config,
            processor.banned_token_ids,
            processor.stop_token_ids,
            processor.engine_options,
            num_cpus=config.generator.cpus,
            num_gpus=cluster.engine_gpus(config),
            env=_engine_environment(config),
        )
        self._starting = self._actor.start.remote()
        self._max_model_len = config.generator.max_model_len
        self._shared = SharedMedia(int(MEDIA_SHARE * config.ray.object_store_gib * 2**30))
        self._waiting: list[tuple[Session, Sampling, asyncio.Future[Generation]]] = []

    def wait_ready(self) -> float:
        """Block until the engine has started; seconds it took."""
        return float(cluster.fetch(self._starting))

    async def generate(self, session: Session, sampling: Sampling) -> Generation:
        """Draw the session's next action."""
        require_room(session.sample.id, len(session.token_ids), sampling.max_tokens, self._max_model_len)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Generation] = loop.create_future()
        self._waiting.append((session, sampling, future))
        if len(self._waiting) == 1:
            loop.call_soon(lambda: setattr(self, "_wave", loop.create_task(self._send())))
        return await future

    def load_weights(self, manifest: Manifest, version: int) -> None:
        """Put the segment's weights into the engine under `version`."""
        cluster.call([self._actor], "load_weights", [manifest], [version])

    def close(self) -> None:
        """Stop the engine's process."""
        cluster.stop([self._actor])

    async def _send(self) -> None:
        waiting, self._waiting = self._waiting, []
        references = self._shared.references(m for session, _, _ in waiting for m in session.media)
        requests = [
            EngineRequest(
                sample_id=session.sample.id,
                engine_ids=np.asarray(session.engine_ids),
                expected_ids=np.asarray(session.token_ids),
                media=tuple(m.sha256 for m in session.media),
                sampling=sampling,
            )
            for session, sampling, _ in waiting
        ]
        try:
            drawn = await cluster.fetch_async(self._actor.generate.remote(requests, references))
        except Exception as error:  # handed on to every session of the wave
            for _, _, future in waiting:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, _, future), generation in zip(waiting, drawn, strict=True):
            if not future.done():  # an episode over its time no longer waits
                future.set_result(generation)


def _engine_item(medium: Media) -> Any:
    """A medium as vLLM takes it: a picture, or frames with the times they were taken at."""
    if medium.kind == "image":
        return Image.fromarray(medium.frames[0])
    return medium.frames, video_metadata(medium.shape)


def _generation(output: Any, request: EngineRequest) -> Generation:
    """An output of vLLM as ours, after the check that both engines saw the same prompt."""
    if not np.array_equal(np.asarray(output.prompt_token_ids), request.expected_ids):
        raise EngineError(
            f"sample {request.sample_id!r}: the engine's prompt has {len(output.prompt_token_ids)} tokens, "
            f"the processor's {len(request.expected_ids)}; media were expanded differently, so training "
            "would be on another prompt than was sampled (law 3)"
        )
    completion = output.outputs[0]
    return Generation(
        token_ids=np.asarray(completion.token_ids, dtype=np.int64),
        sampler_logprobs=np.asarray(completion.logprobs.logprobs, dtype=np.float32),
        version_spans=tuple(VersionSpan(int(s.version), s.start, s.end) for s in completion.weight_versions),
        finished=completion.finish_reason == "stop",
    )


def _engine_environment(config: Config) -> dict[str, str]:
    env = {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the engine steps inside the actor, in an order we control
        "VLLM_LOGGING_LEVEL": os.environ.get("VLLM_LOGGING_LEVEL", "ERROR"),
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": str(config.generator.cpu_kv_cache_gib),
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": str(cluster.num_threads(config, num_processes=1)),
    }
    if config.generator.enforce_eager:
        env["TORCHDYNAMO_DISABLE"] = (
            "1"  # vLLM compiles a few helpers even when eager: 10 s at the first wave
        )
    return env
