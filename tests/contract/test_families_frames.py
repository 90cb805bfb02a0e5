"""Videos of families whose frames are images of their own, against transformers' own processors and models.

Their engines are compared in test_families_engines.py, trees of their episodes in test_trees.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import family_config, make_generation, make_group, random_image
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from plain_model import model_of

from vlrl.config.rollout import ContextConfig
from vlrl.errors import DataError
from vlrl.model.logprobs import DeviceBatch, TreeLogprobs
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.processors.auto import open_processor
from vlrl.processors.media.video_metadata import metadata_of
from vlrl.rollout.session import Session
from vlrl.rollout.visible import visible
from vlrl.types import Group, Sample, Score

FAMILIES = ["llava_onevision", "internvl", "internvl3_5", "minicpmv4_6", "gemma4"]
FPS = 1.6
TEMPLATE_ENDS_TURNS_OTHERWISE = ("llava_onevision",)  # see REWRITES in test_families.py


@dataclass
class Family:
    name: str
    ours: Any
    theirs: Any
    model: Any

    def sample(self, parts: Sequence[Any], row_id: str = "r") -> Sample:
        """A user's turn; a string is text, an array an image, a list of arrays a video."""
        sample: Sample = self.ours.sample({"id": row_id, "messages": [user(parts)]})
        return sample

    def expected(self, sample: Sample) -> dict[str, Any]:
        """transformers' whole processor, given the frames that were chosen, resized, and their times."""
        messages = [dict(m) for m in sample.messages]
        images = [Image.fromarray(m.frames[0]) for m in sample.media if m.kind == "image"]
        videos = [m for m in sample.media if m.kind == "video"]
        told = {"do_sample_frames": False, "video_metadata": [metadata_of(m.shape) for m in videos]}
        return dict(
            self.theirs(
                text=[self.theirs.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)],
                images=[images] if images else None,
                videos=[np.array(m.frames) for m in videos] or None,
                return_tensors="pt",
                text_kwargs={"add_special_tokens": False},  # the template writes what begins a prompt
                videos_kwargs=told if videos else {},
            )
        )

    def plain_logprobs(self, sample: Sample, completion: Sequence[int]) -> np.ndarray[Any, Any]:
        """transformers' own forward of prompt and completion, with its own processor's tensors."""
        inputs, tail = self.expected(sample), torch.tensor(completion)[None]
        num_prompt = inputs["input_ids"].shape[1]
        for name, rest in (("input_ids", tail), ("mm_token_type_ids", torch.zeros_like(tail))):
            if name in inputs:
                inputs[name] = torch.cat([inputs[name], rest.to(inputs[name].dtype)], dim=1)
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        with torch.no_grad():
            if "num_frames_per_video" in inputs:
                self.encode(inputs)
            logits = self.model(**inputs).logits[0, num_prompt - 1 : -1].float()
        logits[:, list(self.ours.banned_token_ids)] = float("-inf")
        return torch.log_softmax(logits, -1).gather(1, tail[0][:, None])[:, 0].numpy()

    def encode(self, inputs: dict[str, Any]) -> None:
        """Give Gemma 4 features for pixels: its own forward does not hand on how long videos are."""
        core = self.model.model
        names = ("pixel_values_videos", "video_position_ids", "num_frames_per_video")
        encoded = {"video": core.get_video_features(*map(inputs.pop, names), return_dict=True)}
        if "pixel_values" in inputs:
            names = ("pixel_values", "image_position_ids")
            encoded["image"] = core.get_image_features(*map(inputs.pop, names), return_dict=True)
        inputs["mm_encoder_outputs"] = encoded


def user(parts: Sequence[Any]) -> dict[str, Any]:
    return {"role": "user", "content": [part_of(part) for part in parts]}


def part_of(content: Any) -> dict[str, Any]:
    if isinstance(content, list):
        return {"type": "video", "video": content, "fps": FPS}
    kind = "text" if isinstance(content, str) else "image"
    return {"type": kind, kind: content}


def clip(num_frames: int, seed: int = 0, size: tuple[int, int] = (64, 96)) -> list[np.ndarray[Any, Any]]:
    return [random_image(*size, seed=100 * seed + i) for i in range(num_frames)]


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest, tiny_family: Callable[[str], Path]) -> Family:
    from transformers import AutoProcessor

    folder = tiny_family(request.param)
    ours, theirs = open_processor(family_config(folder)), AutoProcessor.from_pretrained(folder)
    return Family(request.param, ours, theirs, model_of(folder))


@settings(max_examples=15, deadline=None)
@given(
    num_frames=st.integers(1, 7),
    size=st.tuples(st.integers(32, 200), st.integers(32, 200)),
    images=st.integers(0, 1),
)
def test_ids_equal_transformers_own(
    family: Family, num_frames: int, size: tuple[int, int], images: int
) -> None:
    """A video, behind an image too, and no tokens are counted wrong from headers alone.

    Text before it ends with a line: transformers, which expands text and not tokens, would join other text to
    the word that a video may begin with.
    """
    before = [random_image(70, 150)] * images
    parts = ["Before\n", *before, "\n", clip(num_frames, size=size), "\nwhat happens?"]
    sample = family.sample(parts)
    assert sample.prompt.token_ids.tolist() == family.expected(sample)["input_ids"][0].tolist()
    assert family.ours.num_tokens({"id": "r", "messages": [user(parts)]}) == len(sample.prompt.token_ids)


def logprobs_of(family: Family, groups: list[Group], **options: Any) -> list[np.ndarray[Any, Any]]:
    """The trainer's, of every group's trained tokens, all in one micro-batch."""
    for group in groups:
        for trajectory in group.trajectories:
            trajectory.score = Score(0.0, {})
    own = {"num_ranks": 1, "max_tokens": 10_000, "aggregation": "token", "max_completion_tokens": 8}
    [[batch]] = pack(groups, family.ours.pixels, PackOptions(**own | options, keep_zero_advantage=True))
    wrapped = TreeLogprobs(family.model, temperature=1.0, banned_token_ids=family.ours.banned_token_ids)
    with torch.no_grad():
        logprobs, _ = wrapped(DeviceBatch.of(batch, torch.device("cpu")))
    owners = np.array(batch.token_sample_ids)[batch.sequence_ids]
    return [logprobs.numpy()[owners == g.trajectories[0].sample.id] for g in groups]


def test_the_trainer_s_forward_equals_transformers_own(family: Family) -> None:
    """Trees with a video, a longer one, an image, both and nothing, side by side."""
    image = random_image(70, 150, 1)
    samples = [
        family.sample([clip(4), "\nwhat?"], "video"),
        family.sample(["no image"], "none"),
        family.sample([clip(1, 2), "\nwhat?"], "one frame"),
        family.sample([image, "?"], "image"),
        family.sample([image, "\n", clip(7, 3), "\nwhat?"], "both"),
    ]
    groups = [make_group([5, 3], sample=s, seed=i) for i, s in enumerate(samples)]
    for group, ours in zip(groups, logprobs_of(family, groups), strict=True):
        theirs = [family.plain_logprobs(t.sample, t.action_ids) for t in group.trajectories]
        assert np.abs(ours - np.concatenate(theirs)).max() < 1e-4, group.trajectories[0].sample.id


def test_the_order_of_frames_is_seen(family: Family) -> None:
    frames = clip(4)
    [one] = logprobs_of(family, [make_group([6], sample=family.sample([frames, "?"]))])
    [other] = logprobs_of(family, [make_group([6], sample=family.sample([frames[::-1], "?"]))])
    assert np.abs(one - other).max() > 1e-4


def test_frames_are_what_the_whole_processor_makes_of_them(family: Family) -> None:
    """vLLM's copy resizes what it is given: to the same slices, or to the one size that frames have."""
    medium = family.sample([clip(3, size=(70, 150)), "?"]).media[0]
    limits = family.ours.config.video
    assert family.ours.fit_video(*medium.size, limits.min_pixels, limits.max_pixels) == medium.size
    theirs = family.theirs.video_processor(
        videos=[np.array(medium.frames)],
        video_metadata=[metadata_of(medium.shape)],
        do_sample_frames=False,
        return_tensors="pt",
    )["pixel_values_videos"]
    ours = family.ours.pixels([medium])["pixel_values"]
    assert np.allclose(ours.reshape(theirs.shape), theirs, rtol=0, atol=1e-6)


def test_a_video_of_a_later_turn_is_what_the_rendered_conversation_has(family: Family) -> None:
    first, later = clip(3), clip(3, 5)  # transformers stacks a prompt's videos
    session = Session(family.sample([first, "\nWhich?"]), 0)
    family.ours.act(session, make_generation(family.ours.encode_target("twelve")))
    parts = [part_of(later), part_of("\nWhy?")]
    session.append_message(family.ours.message("user", parts, "r"), "Why?")
    family.ours.show(session, visible(session.conversation, ContextConfig()))
    answer = {"role": "assistant", "content": [{"type": "text", "text": "twelve"}]}
    talk = [user([first, "\nWhich?"]), answer, user([later, "\nWhy?"])]
    rendered = family.ours.sample({"id": "r", "messages": talk})
    assert session.token_ids == rendered.prompt.token_ids.tolist()
    assert session.engine_ids == rendered.prompt.engine_ids.tolist()
    assert [m.sha256 for m in session.media] == [m.sha256 for m in rendered.media]
    assert session.token_ids == family.expected(rendered)["input_ids"][0].tolist()
    family.ours.act(session, make_generation(family.ours.encode_target("done")))
    forks = family.name in TEMPLATE_ENDS_TURNS_OTHERWISE
    assert len(session.trajectory("", "ok", 0.0).ledgers) == forks + 1


@pytest.mark.parametrize("name", ["smolvlm", "idefics3", "mistral3", "llava_next"])
def test_a_video_is_refused_by_name_where_an_engine_takes_none(
    tiny_family: Callable[[str], Path], name: str
) -> None:
    processor = open_processor(family_config(tiny_family(name)))
    with pytest.raises(DataError, match=r"'r': \w+Processor takes no video; give its frames as images"):
        processor.sample({"id": "r", "messages": [user([clip(2), "?"])]})
