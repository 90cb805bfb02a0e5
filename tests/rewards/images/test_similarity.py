"""SSIM by its closed forms and by its definition, CLIP of a tiny model; a blank sheet earns nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import make_sample, make_trajectory
from PIL import Image, ImageDraw

from vlrl.errors import ConfigError
from vlrl.registry import resolve
from vlrl.rewards.images.similarity import image_clip, image_ssim, over_blank, ssim
from vlrl.types import Media, Trajectory


def medium(pixels: np.ndarray) -> Media:
    return Media("image", str(pixels.sum()), pixels[None], pixels.shape[:2], (1, 1, 1), 1)


def episode_with(reference: np.ndarray | None, end: np.ndarray | None) -> Trajectory:
    """An episode whose prompt showed one image, and which ended with another."""
    sample = make_sample(media=() if reference is None else (medium(reference),))
    return replace(make_trajectory(sample, [1]), end_media=() if end is None else (medium(end),))


def plain(value: int, size: tuple[int, int] = (40, 30)) -> np.ndarray:
    return np.full((size[1], size[0], 3), value, np.uint8)


def chart(heights: tuple[int, ...] = (30, 60, 45), colour: str = "navy") -> np.ndarray:
    image = Image.new("RGB", (120, 90), "white")
    draw = ImageDraw.Draw(image)
    for number, height in enumerate(heights):
        draw.rectangle([15 + 35 * number, 85 - height, 35 + 35 * number, 85], fill=colour)
    return np.asarray(image)


def by_definition(a: np.ndarray, b: np.ndarray) -> float:
    """Window by window, as the paper writes it."""
    axis = np.arange(-5, 6)
    window = np.exp(-(axis[:, None] ** 2 + axis[None, :] ** 2) / (2 * 1.5**2))
    window /= window.sum()
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    values = []
    for row in range(a.shape[0] - 10):
        for column in range(a.shape[1] - 10):
            for channel in range(3):
                x, y = (
                    image[row : row + 11, column : column + 11, channel].astype(float) for image in (a, b)
                )
                mean_x, mean_y = (window * x).sum(), (window * y).sum()
                var_x, var_y = (window * (x - mean_x) ** 2).sum(), (window * (y - mean_y) ** 2).sum()
                shared = (window * (x - mean_x) * (y - mean_y)).sum()
                above = (2 * mean_x * mean_y + c1) * (2 * shared + c2)
                values.append(above / ((mean_x**2 + mean_y**2 + c1) * (var_x + var_y + c2)))
    return float(np.mean(values))


def test_ssim_of_plain_images_in_closed_form() -> None:
    c1 = (0.01 * 255) ** 2
    for a, b in ((0, 0), (10, 200), (255, 0), (128, 130)):
        expected = (2 * a * b + c1) / (a * a + b * b + c1)
        assert ssim(plain(a), plain(b)) == pytest.approx(expected, abs=1e-9)


def test_ssim_is_the_one_defined() -> None:
    rng = np.random.default_rng(0)
    for _ in range(3):
        a, b = rng.integers(0, 256, (2, 16, 18, 3)).astype(np.uint8)
        assert ssim(a, b) == pytest.approx(by_definition(a, b), abs=1e-9)
        assert ssim(a, a) == pytest.approx(1)


def test_nothing_is_earned_by_a_sheet_noise_or_another_chart() -> None:
    reference = chart()
    assert over_blank(reference, reference, ssim, 256) == 1
    assert over_blank(None, reference, ssim, 256) == 0
    for value in (0, 127, 255):
        assert over_blank(plain(value), reference, ssim, 256) == 0, value
    noise = np.random.default_rng(0).integers(0, 256, reference.shape).astype(np.uint8)
    assert over_blank(noise, reference, ssim, 256) == 0
    near, far = chart((30, 60, 50)), chart((60, 20, 80))
    assert over_blank(near, reference, ssim, 256) > 0.8 > 0.5 > over_blank(far, reference, ssim, 256)


def test_the_reward_compares_the_end_of_an_episode_with_the_prompt() -> None:
    assert resolve("rewards", "image_ssim") is image_ssim
    assert image_ssim("", None, trajectory=episode_with(chart(), end=chart())) == 1
    assert image_ssim("", None, trajectory=episode_with(chart(), end=plain(255))) == 0
    assert image_ssim("", None, trajectory=episode_with(chart(), end=None)) == 0
    bigger = np.asarray(Image.fromarray(chart()).resize((480, 360)))
    assert image_ssim("", None, trajectory=episode_with(chart(), end=bigger), side=60) > 0.9


def test_a_sample_without_a_reference_is_a_failure_not_a_zero() -> None:
    for trajectory in (episode_with(None, end=chart()), episode_with(plain(9), end=chart())):
        with pytest.raises(ValueError, match=r"media_index|plain"):
            image_ssim("", None, trajectory=trajectory)
    with pytest.raises(ValueError, match="11 a side"):
        image_ssim("", None, trajectory=episode_with(chart()[:10], end=None))
    with pytest.raises(ConfigError, match="side"):
        image_ssim("", None, trajectory=episode_with(chart(), end=None), side=5)


def test_clip_of_a_tiny_random_model(tmp_path: Path) -> None:
    import torch
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel

    torch.manual_seed(0)
    small: dict[str, Any] = {
        "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2
    }  # fmt: skip
    config = CLIPConfig(
        text_config={**small, "vocab_size": 64, "bos_token_id": 0, "eos_token_id": 1},
        vision_config={**small, "image_size": 32, "patch_size": 8},
        projection_dim=16,
    )
    CLIPModel(config).save_pretrained(tmp_path)
    CLIPImageProcessor(size={"shortest_edge": 32}, crop_size=32).save_pretrained(tmp_path)
    assert resolve("rewards", "image_clip") is image_clip

    def score(end: np.ndarray | None) -> float:
        return image_clip("", None, trajectory=episode_with(chart(), end=end), model=str(tmp_path))

    assert score(chart()) == pytest.approx(1, abs=1e-5)
    assert score(plain(255)) == score(None) == 0
    assert 0 < score(chart((30, 60, 50))) < 1
    with pytest.raises(ConfigError, match="not a folder of a CLIP model"):
        image_clip("", None, trajectory=episode_with(chart(), end=None), model=str(tmp_path / "none"))
