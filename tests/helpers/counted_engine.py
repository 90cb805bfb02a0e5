"""A program: an engine that counts what it computes for groups of one prompt. Prints JSON.

python counted_engine.py MODEL GROUP_SIZE
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np
from builders import make_config, open_tiny, random_image, row

from vlrl.engine import engine as engine_module
from vlrl.engine.arguments import engine_environment
from vlrl.engine.requests import EngineRequest
from vlrl.types import Media, Sample, Sampling


def main() -> None:
    """Two prompts that share one of their images, a group of each, in one batch."""
    folder, size = sys.argv[1], int(sys.argv[2])
    config, processor = make_config(folder), open_tiny(folder)
    os.environ.update(engine_environment(config, on_gpu=False))
    engine_module.fetch_media = dict  # type: ignore[assignment]  # the media themselves, without Ray
    engine = engine_module.Engine(config, processor.banned_token_ids, processor.stop_token_ids, {})
    engine.run(engine.build).result()
    counts = {"images": 0, "tokens": []}
    engine.run(lambda: count(engine._engine, counts)).result()
    shared = random_image(112, 112, 0)
    samples = [
        processor.sample(row("Compare both.", [shared, random_image(84, 112, n + 1)], row_id=f"p{n}"))
        for n in range(2)
    ]
    media: dict[str, Media] = {medium.sha256: medium for sample in samples for medium in sample.media}
    requests = [request(sample, member) for sample in samples for member in range(size)]
    results = engine.run(lambda: engine.generate_batch(requests, media)).result()
    found = {
        **counts,
        "prompts": [len(sample.prompt.token_ids) for sample in samples],
        "distinct_images": len(media),
        "distinct_completions": len({tuple(result.token_ids) for result in results}),
    }
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
    os._exit(0)  # vLLM's threads would hold the process


def count(vllm: Any, counts: dict[str, Any]) -> None:
    """Have the engine's model and scheduler count images that are encoded and tokens of each step."""
    scheduler = vllm.engine_core.engine_core.scheduler
    [model] = vllm.collective_rpc(lambda worker: worker.model_runner.get_model())
    encode, schedule = model.embed_multimodal, scheduler.schedule

    def counted_encode(**inputs: Any) -> Any:
        counts["images"] += len(inputs["image_grid_thw"])
        return encode(**inputs)

    def counted_schedule(*arguments: Any, **options: Any) -> Any:
        output = schedule(*arguments, **options)
        counts["tokens"].append(output.total_num_scheduled_tokens)
        return output

    model.embed_multimodal, scheduler.schedule = counted_encode, counted_schedule


def request(sample: Sample, member: int) -> EngineRequest:
    """A completion of four tokens."""
    return EngineRequest(
        name=f"{sample.id}-{member}",
        sample_id=sample.id,
        engine_ids=np.asarray(sample.prompt.engine_ids),
        expected_ids=np.asarray(sample.prompt.token_ids),
        media=tuple(medium.sha256 for medium in sample.media),
        sampling=Sampling(temperature=1.0, max_tokens=4, seed=member),
        begins=True,
    )


if __name__ == "__main__":
    main()
