"""Patches of vLLM: images that it drops and needs again, and videos of LLaVA-OneVision and of InternVL."""

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


def correct_videos(engine: Any) -> None:
    """Have an engine that was started take videos as the trainer does."""
    engine.collective_rpc("correct_model")
    if type(engine.renderer.mm_processor).__name__ == "InternS1MultiModalProcessor":
        write_frames_as_images(engine.renderer.mm_processor)


def flatten_videos(model: Any) -> None:
    """Have vLLM's LLaVA-OneVision give each video's features as [num_tokens, hidden], as its runner wants.

    Where a batch has videos of different lengths they are [1, num_tokens, hidden], which ends the engine.
    """
    if type(model).__name__ != "LlavaOnevisionForConditionalGeneration":
        return
    compute = model._process_video_pixels
    model._process_video_pixels = lambda inputs: [video.flatten(0, -2) for video in compute(inputs)]


def write_frames_as_images(processor: Any) -> None:
    """Have vLLM write the pads of InternVL's videos as transformers does, which are those of images.

    It writes others. The model does not see them, as features take their places, but the prompts differ.
    """
    from vllm.multimodal.processing import PromptReplacement, PromptUpdateDetails

    own = processor._get_prompt_updates

    def updates(mm_items: Any, hf_processor_mm_kwargs: Any, out_mm_kwargs: Any) -> list[Any]:
        theirs = processor.info.get_hf_processor(**hf_processor_mm_kwargs)
        image_id, video_id = theirs.tokenizer.convert_tokens_to_ids([theirs.image_token, theirs.video_token])
        images, videos = own(mm_items, hf_processor_mm_kwargs, out_mm_kwargs)

        def frames(index: int) -> Any:
            ids = [image_id if token == video_id else token for token in videos.replacement(index).full]
            return PromptUpdateDetails.select_token_id(ids, image_id)

        return [images, PromptReplacement("video", [video_id], frames)]

    processor._get_prompt_updates = updates
