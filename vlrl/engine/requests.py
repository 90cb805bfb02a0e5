"""What an engine is asked and answers, and the same in vLLM's terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from vlrl.engine.structured import structured_params
from vlrl.errors import EngineError
from vlrl.ledger import ExpertArray
from vlrl.processors.media.video_metadata import video_metadata
from vlrl.types import Generation, IntArray, Media, Sampling, VersionSpan


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """One action to generate, under a name of its own. Media are named by hash and lie in shared memory.

    Attributes:
        name: of this request alone, among all clients'.
        sample_id: for messages.
        engine_ids: the prompt, one placeholder per medium.
        expected_ids: what the engine must make of it (law 3).
        media: hashes, in order.
        sampling: how it is generated.
        order: (position, group index) of its episode: the place in a batch that several clients make.
        policy: number of the one whose adapter generates it; 0 where there is but one.
        begins: whether it is its episode's first.
        form: what it is held to, see `vlrl.model.structured.forms`; "" lets every token follow.
    """

    name: str
    sample_id: str
    engine_ids: IntArray
    expected_ids: IntArray
    media: tuple[str, ...]
    sampling: Sampling
    order: tuple[int, int] = (0, 0)
    policy: int = 0
    begins: bool = False
    form: str = ""


@dataclass(frozen=True, slots=True)
class JointBatch:
    """What batches of an engine a client's requests are part of.

    Attributes:
        round: name of the round, in which clients play in lockstep.
        client: the client's number.
        clients: everybody whose requests the engine waits for.
    """

    round: str
    client: int
    clients: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Load:
    """How busy an engine is.

    Attributes:
        kv_usage: share of the KV cache's blocks that hold something, 0 to 1.
        num_waiting: requests for which there is no room yet.
    """

    kv_usage: float
    num_waiting: int


GenerationResult = Generation | Exception
"""A finished request, or why there is none."""


def prompt_of(request: EngineRequest, media: Mapping[str, Media]) -> dict[str, Any]:
    """A request's prompt as vLLM's renderer takes it; media by sha256."""
    prompt: dict[str, Any] = {"prompt_token_ids": request.engine_ids.tolist()}
    data: dict[str, list[Any]] = {}
    uuids: dict[str, list[str]] = {}
    for sha256 in request.media:
        medium = media[sha256]
        data.setdefault(medium.kind, []).append(_engine_item(medium))
        uuids.setdefault(medium.kind, []).append(sha256)
    if data:
        prompt |= {"multi_modal_data": data, "multi_modal_uuids": uuids}
    return prompt


def sampling_fields(sampling: Sampling, stop_token_ids: Sequence[int]) -> dict[str, Any]:
    """Fields of vLLM's SamplingParams; stop tokens are the processor's alone."""
    return {
        "temperature": sampling.temperature,
        "max_tokens": sampling.max_tokens,
        "seed": sampling.seed,
        "stop_token_ids": list(stop_token_ids),
        "ignore_eos": True,
        "logprobs": 0,
        "detokenize": False,
    }


def sampling_params(request: EngineRequest, stop_token_ids: Sequence[int]) -> Any:
    """Parameters of one request for an engine of this process."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    return SamplingParams(
        **sampling_fields(request.sampling, stop_token_ids),
        flat_logprobs=True,
        output_kind=RequestOutputKind.FINAL_ONLY,
        structured_outputs=structured_params(request.form, request.sample_id),
    )


def _engine_item(medium: Media) -> Any:
    """A medium as vLLM takes it: an image; frames, all wanted, with their times; or samples and rate."""
    if medium.kind == "audio":
        assert medium.fps is not None
        return medium.samples, medium.fps
    if medium.kind == "image":
        return Image.fromarray(medium.frames[0])
    return medium.frames, {**video_metadata(medium.shape), "do_sample_frames": False}


def generation_of(
    output: Any, request: EngineRequest, routed_experts: ExpertArray | None = None
) -> Generation:
    """An output of vLLM as ours, after the check that both engines saw the same prompt.

    Args:
        output: of a request that is done.
        request: the request.
        routed_experts: recorded beside it where vLLM does not return them itself.

    Raises:
        EngineError: if the prompts differ, or choices of experts are missing for some tokens.
    """
    require_same_prompt(output.prompt_token_ids, request)
    completion = output.outputs[0]
    return Generation(
        token_ids=np.asarray(completion.token_ids, dtype=np.int64),
        sampler_logprobs=np.asarray(completion.logprobs.logprobs, dtype=np.float32),
        version_spans=tuple(VersionSpan(int(s.version), s.start, s.end) for s in completion.weight_versions),
        finished=completion.finish_reason == "stop",
        routed_experts=_whole(
            completion.routed_experts if routed_experts is None else routed_experts,
            len(request.expected_ids) + len(completion.token_ids) - 1,
            request,
        ),
    )


def require_same_prompt(prompt_token_ids: Sequence[int], request: EngineRequest) -> None:
    """Raise EngineError if the engine made another prompt of a request than the processor."""
    if not np.array_equal(np.asarray(prompt_token_ids), request.expected_ids):
        raise EngineError(
            f"sample {request.sample_id!r}: the engine's prompt has {len(prompt_token_ids)} tokens, "
            f"the processor's {len(request.expected_ids)}; media were expanded differently, so training "
            "would be on another prompt than was sampled (law 3)"
        )


def _whole(routed_experts: ExpertArray | None, num_inputs: int, request: EngineRequest) -> ExpertArray | None:
    """Choices of experts for every input; without those of the last token, which was none."""
    if routed_experts is None:
        return None
    if len(routed_experts) not in (num_inputs, num_inputs + 1):
        raise EngineError(
            f"sample {request.sample_id!r}: the engine returned choices of experts for {len(routed_experts)} "
            f"of {num_inputs} tokens; the trainer would replay them at the wrong places. Report this, and "
            "leave generator.routing_replay out"
        )
    return routed_experts[:num_inputs]
