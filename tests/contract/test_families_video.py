"""Videos at rates other than two frames a second, against transformers' own processors and models.

Engines are compared with these prompts in tests/e2e/test_train_media.py and test_families_engines.py.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import family_config, random_image
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_model import model_of
from transformers.video_utils import VideoMetadata

from vlrl.model.logprobs import TreeLogprobs
from vlrl.processors.auto import open_processor
from vlrl.types import Sample

RATES = [0.7, 2.0, 3.0, 7.3]


@dataclass
class Family:
    ours: Any
    theirs: Any
    model: Any

    def sample(self, num_frames: int, fps: float, *, size: tuple[int, int] = (64, 96)) -> Sample:
        frames = [random_image(*size, seed=i) for i in range(num_frames)]
        content = [
            {"type": "text", "text": "Before "},
            {"type": "video", "video": frames, "fps": fps},
            {"type": "text", "text": " between "},
            {"type": "image", "image": random_image(70, 150)},
            {"type": "text", "text": " what happens?"},
        ]
        sample: Sample = self.ours.sample({"id": "v", "messages": [{"role": "user", "content": content}]})
        return sample

    def expected(self, sample: Sample) -> dict[str, Any]:
        """transformers' whole processor, told how many frames there are a second and nothing else."""
        video, image = sample.media
        num_frames = len(video.frames)
        metadata = VideoMetadata(
            total_num_frames=num_frames, fps=video.fps, frames_indices=list(range(num_frames))
        )
        messages = [dict(m) for m in sample.messages]
        return dict(
            self.theirs(
                text=[self.theirs.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)],
                images=[np.array(image.frames[0])],
                videos=[np.array(video.frames)],
                return_tensors="pt",
                images_kwargs={"do_resize": False},
                videos_kwargs={"do_resize": False, "do_sample_frames": False, "video_metadata": [metadata]},
            )
        )


@pytest.fixture(
    scope="module",
    params=["qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "glm4v", "glm4v_moe"],
)
def family(request: pytest.FixtureRequest, tiny_family: Callable[[str], Path]) -> Family:
    from transformers import AutoProcessor

    folder = tiny_family(request.param)
    video = {"min_pixels": 32 * 32, "max_pixels": 96 * 96}
    config = family_config(folder, processor={"min_pixels": 4096, "max_pixels": 160 * 160, "video": video})
    return Family(open_processor(config), AutoProcessor.from_pretrained(folder), model_of(folder))


@settings(max_examples=15, deadline=None)
@given(num_frames=st.integers(2, 12), fps=st.sampled_from(RATES))
def test_ids_and_patches_equal_transformers_own(family: Family, num_frames: int, fps: float) -> None:
    sample = family.sample(num_frames, fps)
    expected = family.expected(sample)
    assert sample.prompt.token_ids.tolist() == expected["input_ids"][0].tolist()
    inputs = family.ours.pixels(sample.media)  # the video, which stands first, then the image
    grids = np.concatenate([expected["video_grid_thw"], expected["image_grid_thw"]])
    patches = np.concatenate([expected["pixel_values_videos"], expected["pixel_values"]])
    assert np.array_equal(inputs["image_grid_thw"], grids)
    assert np.array_equal(inputs["pixel_values"], patches)


@pytest.mark.parametrize("fps", RATES)
@pytest.mark.parametrize("num_frames", [4, 12])
def test_positions_equal_transformers_own(family: Family, num_frames: int, fps: float) -> None:
    """Positions agree up to the video's end; after one longer than high and wide, transformers differs.

    The published models and vLLM go on after the video's largest position, and so does vlrl. If this fails
    because nothing differs any more, transformers has followed: compare everything.
    """
    sample = family.sample(num_frames, fps)
    inputs = family.expected(sample)
    options = {"image_grid_thw": inputs["image_grid_thw"], "video_grid_thw": inputs["video_grid_thw"]}
    if "second_per_grid_ts" in inputs:
        options["second_per_grid_ts"] = torch.as_tensor(inputs["second_per_grid_ts"])
    found, _ = family.model.model.get_rope_index(inputs["input_ids"], inputs["mm_token_type_ids"], **options)
    theirs, ours = found[:, 0].numpy(), sample.prompt.position_ids
    of_video = np.asarray(inputs["mm_token_type_ids"])[0] == 2
    end = int(np.flatnonzero(of_video)[-1]) + 1
    assert np.array_equal(ours[:, :end], theirs[:, :end])
    assert (ours[:, end] == ours[:, :end].max() + 1).all()
    shift = ours[:, end:] - theirs[:, end:]
    assert len(np.unique(shift)) == 1  # what follows is moved as a whole
    longest_side = theirs[1:, :end].max()
    assert (shift[0, 0] > 0) == (ours[0, :end].max() > longest_side)


def test_features_equal_transformers_own(family: Family) -> None:
    """The trainer gives the tower videos and images in one call; transformers has a method for each."""
    sample = family.sample(6, 2.0)
    inputs = family.expected(sample)
    core = TreeLogprobs(copy.deepcopy(family.model), temperature=1.0, banned_token_ids=[]).model.model
    pixels = {name: torch.tensor(value) for name, value in family.ours.pixels(sample.media).items()}
    with torch.no_grad():
        found = core.get_image_features(**pixels, return_dict=True).pooler_output
        video, image = (
            function(inputs[pixels], inputs[grid], return_dict=True).pooler_output
            for function, pixels, grid in (
                (family.model.model.get_video_features, "pixel_values_videos", "video_grid_thw"),
                (family.model.model.get_image_features, "pixel_values", "image_grid_thw"),
            )
        )
    assert [len(one) for one in found] == [len(torch.cat(list(one))) for one in (video, image)]
    for ours, theirs in zip(found, (video, image), strict=True):
        assert (ours - torch.cat(list(theirs))).abs().max() < 1e-5


def test_another_rate_is_another_prompt_or_other_positions(family: Family) -> None:
    """Time reaches the model: as written seconds (Qwen3-VL) or as positions (Qwen2.5-VL)."""
    slow, fast = family.sample(8, 0.7).prompt, family.sample(8, 7.3).prompt
    same_ids = slow.token_ids.tolist() == fast.token_ids.tolist()
    same_positions = slow.position_ids.tolist() == fast.position_ids.tolist()
    assert (same_ids and same_positions) == (family.model.config.model_type == "qwen2_vl")
