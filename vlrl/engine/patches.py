"""A patch of vLLM: it keeps the images of cached prompts, which it needs when a request is computed again."""

from __future__ import annotations

from typing import Any


def keep_images_of_cached_prompts() -> None:
    """Have vLLM give its workers all images of a request, those that lie in cached blocks too.

    Since vLLM #52041 it leaves the cached ones out as not needed. They are needed when a running request is
    computed again, after an update or for lack of blocks: the workers then lack a part of it.
    """
    from vllm.v1.core.sched import output

    def all_of_them(mm_features: list[Any], num_computed_tokens: int, uses_mrope: bool = False) -> list[Any]:
        return mm_features

    output.strip_covered_mm_data = all_of_them
