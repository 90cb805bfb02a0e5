"""Gemma 4: which models are refused, the sizes of images, and thoughts that the template takes out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
import torch
from builders import family_config, make_context, make_generation, observe, random_image
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_model import model_of
from sounds import audio_part, noise

from vlrl.engine.policy import VllmPolicy
from vlrl.errors import ConfigError, DataError
from vlrl.model import attention
from vlrl.model.kernels.trial import HeadShape
from vlrl.model.logprobs import TreeLogprobs
from vlrl.model.omni.towers import media_features
from vlrl.processors.auto import open_processor
from vlrl.rollout.groups import rollout_groups
from vlrl.rollout.session import Session
from vlrl.types import Media, MediaShape


def seen_both_ways(folder: Path, target: Path) -> Path:
    """The tiny model with the attention that 26B-A4B and 31B have."""
    return with_text_config(folder, target, use_bidirectional_attention="vision")


def with_text_config(folder: Path, target: Path, **fields: Any) -> Path:
    copytree(folder, target)
    config = json.loads((target / "config.json").read_text())
    config["text_config"].update(fields)
    (target / "config.json").write_text(json.dumps(config))
    return target


def test_images_that_see_themselves_both_ways_are_refused(
    tiny_family: Callable[[str], Path], tmp_path: Path
) -> None:
    """The processor refuses, before anything is started; with another processor the trainer does."""
    folder = seen_both_ways(tiny_family("gemma4"), tmp_path / "model")
    said = r"text_config\.use_bidirectional_attention='vision'.*train Gemma 4 E2B or E4B"
    with pytest.raises(ConfigError, match=said):
        open_processor(family_config(folder))
    with pytest.raises(ConfigError, match=said):
        TreeLogprobs(model_of(folder), temperature=1.0, banned_token_ids=[])


def test_a_padding_token_that_vllm_does_not_count_on_is_refused(
    tiny_family: Callable[[str], Path], tmp_path: Path
) -> None:
    """It looks up token 0 where an image stands, transformers the padding token."""
    folder = with_text_config(tiny_family("gemma4"), tmp_path / "model", pad_token_id=1)
    with pytest.raises(ConfigError, match=r"text_config\.pad_token_id=1: .*give 0"):
        open_processor(family_config(folder))


@pytest.mark.slow
def test_vllm_on_a_cpu_lets_them_see_only_backwards(
    tiny_family: Callable[[str], Path], tmp_path: Path, local_ray: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Why they are refused. If this fails on a CPU, vLLM has learned it; vlrl's trees have still to."""
    folder = seen_both_ways(tiny_family("gemma4"), tmp_path / "model")
    config = family_config(folder, rollout={"group_size": 2, "max_tokens": 6})
    monkeypatch.setattr(attention, "require_causal", lambda text_config: None)
    processor: Any = open_processor(config)
    policy = VllmPolicy(config, processor)
    try:
        policy.wait_ready()
        image = {"type": "image", "image": random_image(70, 150)}
        row = {"id": "r", "messages": [{"role": "user", "content": [image, {"type": "text", "text": "?"}]}]}
        context = make_context(policy, processor, config)
        [group] = asyncio.run(rollout_groups([processor.sample(row)], context, seed_path=(0,))).groups
    finally:
        policy.close()
    model = model_of(folder)

    def largest_difference(both_ways: bool) -> float:
        worst = 0.0
        for t in group.trajectories:
            ids = torch.tensor(t.ledgers[0].token_ids)[None]
            inputs = {k: torch.tensor(v) for k, v in processor.pixels(t.media).items()}
            if both_ways:
                inputs["mm_token_type_ids"] = (ids == model.config.image_token_id).long()
            with torch.no_grad():
                logits = model(input_ids=ids, attention_mask=torch.ones_like(ids), **inputs).logits[0, :-1]
            logits[:, list(processor.banned_token_ids)] = -torch.inf
            found = torch.log_softmax(logits.float(), -1).gather(1, ids[0, 1:, None])[:, 0].numpy()
            mask, sampled = t.ledgers[0].loss_mask, t.ledgers[0].sampler_logprobs
            worst = max(worst, np.abs(found[mask[1:]] - sampled[mask]).max())
        return float(worst)

    assert largest_difference(both_ways=False) < 1e-4
    assert largest_difference(both_ways=True) > 1e-3


@settings(max_examples=200, deadline=None)
@given(height=st.integers(1, 3000), width=st.integers(1, 3000))
def test_a_size_that_was_given_comes_back_as_it_is(
    tiny_family: Callable[[str], Path], height: int, width: int
) -> None:
    processor: Any = open_processor_once(tiny_family("gemma4"))
    size = processor.fit(height, width, 1, 1)
    assert processor.fit(*size, 1, 1) == size
    num_tokens = (size[0] // 8) * (size[1] // 8)
    assert size[0] % 8 == size[1] % 8 == 0 and 0 < num_tokens <= 70
    assert processor.expand(MediaShape("image", size)).count("<|image|>") == num_tokens


@pytest.mark.slow
def test_an_adapter_that_vllm_would_call_past_is_refused(
    tiny_family: Callable[[str], Path], local_ray: None
) -> None:
    """The projection of the layers' embeddings is held by two of its modules, and wrapped in one of them."""
    config = family_config(tiny_family("gemma4"), lora={"rank": 2, "sync": "adapter"})
    policy = VllmPolicy(config, open_processor(config))
    try:
        with pytest.raises(ConfigError, match=r"1 layers of .*per_layer_model_projection.*lora\.sync=merged"):
            policy.wait_ready()
    finally:
        policy.close()


@cache
def open_processor_once(folder: Path) -> Any:
    return open_processor(family_config(folder))


@pytest.mark.slow
def test_vllm_counts_as_many_tokens_for_every_size() -> None:
    """Its formula is another one; at sizes that stay as they are both give the same."""
    from types import SimpleNamespace

    from transformers.models.gemma4.image_processing_gemma4 import get_aspect_ratio_preserving_size
    from vllm.model_executor.models.gemma4_mm import Gemma4ProcessingInfo

    options = {"patch_size": 16, "pooling_kernel_size": 3}
    vision = SimpleNamespace(default_output_length=0, **options)
    info: Any = SimpleNamespace(get_hf_config=lambda: SimpleNamespace(vision_config=vision))
    seen = 0
    for most in (70, 140, 280, 560, 1120):
        for high in range(1, most + 1):
            for wide in range(1, most // high + 1):
                size = high * 48, wide * 48
                if get_aspect_ratio_preserving_size(*size, max_patches=9 * most, **options) == size:
                    seen += 1
                    count = Gemma4ProcessingInfo._compute_num_soft_tokens(info, size[1], size[0], most)
                    assert count == high * wide
    assert seen > 400


def test_an_image_has_the_tokens_of_the_model_whatever_max_pixels_is(
    tiny_family: Callable[[str], Path],
) -> None:
    """And transformers' processor leaves what vlrl resized as it is."""
    folder = tiny_family("gemma4")
    few = open_processor(family_config(folder, processor={"min_pixels": 28 * 28, "max_pixels": 28 * 28}))
    content = [{"type": "image", "image": random_image(30, 20)}]
    media = few.sample({"id": "r", "messages": [{"role": "user", "content": content}]}).media
    assert media[0].size == (80, 48) and media[0].num_tokens == 60 + 2
    positions = few.pixels(media)["image_position_ids"]
    assert (positions != -1).all(-1).sum() == 4 * 60


def with_tokens(folder: Path, aside: Path, kind: str, most_tokens: int) -> Path:
    """A copy of a model whose images or frames have so many tokens."""
    copytree(folder, aside)
    settings = json.loads((aside / "processor_config.json").read_text())
    settings[f"{kind}_processor"]["max_soft_tokens"] = most_tokens
    (aside / "processor_config.json").write_text(json.dumps(settings))
    return aside


def test_frames_beside_larger_images_have_the_features_that_they_have_alone(
    tiny_family: Callable[[str], Path], tmp_path: Path
) -> None:
    """One call of the tower takes both; as published an image has four times as many tokens as a frame."""
    folder = with_tokens(tiny_family("gemma4"), tmp_path / "model", "image", 140)
    processor = open_processor(family_config(folder))
    core = TreeLogprobs(model_of(folder), temperature=1.0, banned_token_ids=[]).model.model
    frames = [random_image(64, 96, seed) for seed in range(3)]
    content = [{"type": "image", "image": random_image(70, 150)}, {"type": "video", "video": frames}]
    image, video = processor.sample({"id": "r", "messages": [{"role": "user", "content": content}]}).media
    assert image.num_tokens > 100 > video.num_tokens // 3

    def features(*media: Media) -> list[torch.Tensor]:
        pixels = {name: torch.tensor(array) for name, array in processor.pixels(media).items()}
        with torch.no_grad():
            return list(core.get_image_features(**pixels, return_dict=True).pooler_output)

    together, apart = features(image, video), features(image) + features(video)
    assert [len(one) for one in together] == [len(one) for one in apart]
    assert all((one - other).abs().max() < 1e-5 for one, other in zip(together, apart, strict=True))


def test_a_sound_between_a_video_and_an_image_takes_its_own_place(
    tiny_family: Callable[[str], Path],
) -> None:
    """A video is as many images to the tower as it has frames, and one medium among the others."""
    folder = tiny_family("gemma4")
    processor = open_processor(family_config(folder))
    core = TreeLogprobs(model_of(folder), temperature=1.0, banned_token_ids=[]).model.model
    frames = [random_image(64, 96, seed) for seed in range(3)]
    image = {"type": "image", "image": random_image(70, 150)}
    content = [{"type": "video", "video": frames}, audio_part(noise(0.5, 1)), image]
    sample = processor.sample({"id": "r", "messages": [{"role": "user", "content": content}]})

    def features(*media: Media) -> list[torch.Tensor]:
        pixels = {name: torch.tensor(array) for name, array in processor.pixels(media).items()}
        with torch.no_grad():
            return list(media_features(core, pixels, len(media)).pooler_output)

    together, apart = features(*sample.media), [features(medium)[0] for medium in sample.media]
    assert all(one.shape == other.shape for one, other in zip(together, apart, strict=True))
    assert all((one - other).abs().max() < 1e-5 for one, other in zip(together, apart, strict=True))


def test_videos_of_more_tokens_a_frame_than_vllm_gives_them_are_refused(
    tiny_family: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = with_tokens(tiny_family("gemma4"), tmp_path / "model", "video", 140)
    content = [{"type": "video", "video": [random_image(64, 64)] * 4}]
    with pytest.raises(DataError, match="takes no video; give its frames as images"):
        open_processor(family_config(folder)).sample(
            {"id": "r", "messages": [{"role": "user", "content": content}]}
        )


def test_a_thought_is_trained_and_begins_a_new_ledger(tiny_family: Callable[[str], Path]) -> None:
    """The template takes it out of what was said before, so the next turn sees another text."""
    processor: Any = open_processor(family_config(tiny_family("gemma4")))
    ask = {"role": "user", "content": [{"type": "text", "text": "Which?"}]}
    session = Session(processor.sample({"id": "r", "messages": [ask]}), 0)
    said = processor.encode_target("<|channel>thought\n12 or 3<channel|>12")
    processor.act(session, make_generation(said))
    observe(processor, session, "Why?")
    processor.act(session, make_generation(processor.encode_target("three")))
    first, second = session.trajectory("", "ok", 0.0).ledgers
    assert first.token_ids[first.loss_mask].tolist() == said.tolist()
    shown = processor.decode(second.token_ids)
    assert "<|turn>model\n12<turn|>" in shown and "thought" not in shown


def test_a_kernel_is_tried_at_the_widest_heads(tiny_family: Callable[[str], Path]) -> None:
    """Layers that see all have heads twice as wide as those with a window."""
    heads = attention.heads_of(model_of(tiny_family("gemma4")))
    assert heads == HeadShape(4, 2, 64, torch.float32)
