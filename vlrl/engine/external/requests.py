"""A request to a server's /inference/v1/generate, tokens in and tokens out, and its answer."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image

from vlrl.engine.requests import EngineRequest, require_same_prompt, sampling_fields
from vlrl.engine.structured import structured_fields
from vlrl.errors import EngineError
from vlrl.types import Generation, Media, VersionSpan

PATH = "/inference/v1/generate"


def body_of(request: EngineRequest, urls: Mapping[str, str], stop_token_ids: Sequence[int]) -> dict[str, Any]:
    """What is posted: the prompt's tokens with one placeholder per image, and the images by sha256."""
    sampling = sampling_fields(request.sampling, stop_token_ids)
    if request.form:
        sampling["structured_outputs"] = structured_fields(request.form)
    body: dict[str, Any] = {
        "request_id": request.name,
        "token_ids": request.engine_ids.tolist(),
        "sampling_params": sampling,
        "return_token_ids": True,
    }
    if request.media:
        body["content_parts"] = [
            {"type": "image_url", "url": urls[sha256], "uuid": sha256} for sha256 in request.media
        ]
    return body


def data_urls(media: Mapping[str, Media]) -> dict[str, str]:
    """Each image as a data: URL of a PNG, by sha256: exact, and quickly compressed.

    Raises:
        EngineError: for a video, of which vLLM's server would choose the frames itself.
    """
    return {sha256: _data_url(medium) for sha256, medium in media.items()}


def _data_url(medium: Media) -> str:
    if medium.kind != "image":
        raise EngineError(
            f"a {medium.kind} cannot be sent to generator.servers, which take images alone; leave servers "
            "out, and engines of the run take it"
        )
    buffer = io.BytesIO()
    Image.fromarray(medium.frames[0]).save(buffer, format="png", compress_level=1)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def generation_from(answer: Mapping[str, Any], request: EngineRequest) -> Generation:
    """A server's answer as ours, after the check that both sides saw the same prompt.

    Raises:
        EngineError: if the prompts differ (law 3), or the request was aborted by somebody else.
    """
    require_same_prompt(answer["prompt_token_ids"], request)
    [choice] = answer["choices"]
    if choice["finish_reason"] not in ("stop", "length"):
        raise EngineError(
            f"sample {request.sample_id!r}: the server ended the request with {choice['finish_reason']!r}"
        )
    tokens = choice["logprobs"]["content"]
    return Generation(
        token_ids=np.asarray(choice["token_ids"], dtype=np.int64),
        sampler_logprobs=np.asarray([token["logprob"] for token in tokens], dtype=np.float32),
        version_spans=tuple(
            VersionSpan(int(s["version"]), s["start"], s["end"]) for s in choice["weight_versions"]
        ),
        finished=choice["finish_reason"] == "stop",
    )
