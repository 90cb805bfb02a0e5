"""Raw vLLM's side of generation.py: vllm.LLM.generate in a process of its own. Not run by hand.

    .venv/bin/python benchmarks/raw_step.py JOB.json

It has the arguments, the patches and the environment of vlrl's engine, so what differs is the loop around it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from generation_requests import Requests, serve
from step_job import Job, Pipe

from vlrl.engine.arguments import engine_arguments, engine_environment
from vlrl.engine.requests import sampling_fields
from vlrl.rollout.episodes import sampling_of
from vlrl.types import Sample


def main(plain: bool = False) -> None:
    """Start vLLM and do what the pipe asks for; plain without vlrl's kernels and block size."""
    begin, requests = time.perf_counter(), Requests(Job.read(sys.argv[1]))
    config, processor = requests.config, requests.processor
    environment = engine_environment(config, on_gpu=False)
    if os.environ | environment != os.environ:  # glibc and torch read it when a process starts
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | environment)
    pipe = Pipe()
    given = (config, processor.banned_token_ids, processor.engine_options)
    arguments = engine_arguments(*given, on_gpu=False, begins_empty=not plain)
    if not plain:
        from vlrl.engine.cpu.kernels import choose_kernels

        choose_kernels()
    from vllm import LLM, SamplingParams

    llm = LLM(**arguments)

    def params(sample: Sample, path: tuple[int, ...], index: int) -> Any:
        sampling = sampling_of(config.rollout, *path, sample.id, index, 0)
        return SamplingParams(**sampling_fields(sampling, processor.stop_token_ids), flat_logprobs=True)

    def generate(samples: Sequence[Sample], paths: Sequence[tuple[int, ...]]) -> list[Sequence[int]]:
        members = range(config.rollout.group_size)
        asked = [prompt_of(sample) for sample in samples for _ in members]
        how = [params(s, path, i) for s, path in zip(samples, paths, strict=True) for i in members]
        outputs = llm.generate(asked, how, use_tqdm=False)
        return [output.outputs[0].token_ids for output in outputs]

    pipe.send(start_up={"total": time.perf_counter() - begin})
    serve(pipe, requests, generate)


def prompt_of(sample: Sample) -> dict[str, Any]:
    """A sample as vLLM's users give one: tokens with a placeholder per image, and images."""
    from PIL import Image

    images = [Image.fromarray(medium.frames[0]) for medium in sample.media]
    ids = [int(token) for token in sample.prompt.engine_ids]
    return {"prompt_token_ids": ids, "multi_modal_data": {"image": images}}


if __name__ == "__main__":
    main()
