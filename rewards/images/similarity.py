"""Rewards on an image that an episode ends with: structural similarity, or the distance of CLIP's features.

Both are measured against a blank image: a plain sheet of the reference's median colour is already like a
chart, a page or a drawing, so with m the measure and b its value for that sheet the reward is

    max(0, (m − b) / (1 − b))

which is 0 for the sheet and for everything worse, and 1 for the reference itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image
from scipy.ndimage import correlate1d

from vlrl.errors import ConfigError
from vlrl.scoring.author import reward
from vlrl.types import Media, Trajectory

Pixels: TypeAlias = npt.NDArray[np.uint8]
"""[height, width, 3] uint8 RGB."""
Measure: TypeAlias = Callable[[Pixels, Pixels], float]
"""(image, reference of the same size) → at most 1, and 1 where they are equal."""

WINDOW = 11
SIGMA = 1.5
MAX_SIDE = 2048

_NEARLY_ONE = 1 - 1e-6


@reward(range=(0.0, 1.0))
def image_ssim(
    completion: str, answer: Any, *, trajectory: Trajectory, media_index: int = 0, side: int = 256
) -> float:
    """SSIM of the image that the episode ended with and one of the prompt's, over that of a blank sheet.

    Range [0, 1]; see the module for the formula and `ssim` for the measure. An episode that shows nothing at
    its end, or a blank sheet, scores 0.

    Args:
        completion: not looked at.
        answer: not looked at.
        trajectory: its last image is compared.
        media_index: which of the prompt's media is the reference.
        side: both are shrunk until the reference's longer side has at most so many pixels.

    Raises:
        ValueError: for a sample without that image, or one that is plain or smaller than the window.
        ConfigError: for a side outside of WINDOW to MAX_SIDE.
    """
    return over_blank(_last_image(trajectory), _reference(trajectory, media_index), ssim, side)


@reward(range=(0.0, 1.0), gpu=True)
def image_clip(
    completion: str,
    answer: Any,
    *,
    trajectory: Trajectory,
    model: str,
    device: str = "cpu",
    media_index: int = 0,
    side: int = 512,
) -> float:
    """Cosine of the CLIP features of the episode's last image and one of the prompt's, over that of a sheet.

    Range [0, 1]. Source: CLIP (Radford et al. 2021, arXiv 2103.00020); as a measure of rendered pages,
    Design2Code (Si et al. 2024, arXiv 2403.03163, section 3). It sees what is shown, hardly where.

    Args:
        completion: not looked at.
        answer: not looked at.
        trajectory: its last image is compared.
        model: a local folder with a CLIP model and its processor, in transformers' format.
        device: of torch.
        media_index: which of the prompt's media is the reference.
        side: as for `image_ssim`.

    Raises:
        ValueError: as for `image_ssim`.
        ConfigError: for a folder that holds no such model.
    """
    measure = clip_measure(model, device)
    return over_blank(_last_image(trajectory), _reference(trajectory, media_index), measure, side)


def over_blank(image: Pixels | None, reference: Pixels, measure: Measure, side: int) -> float:
    """The formula on top of this file; 0 without an image.

    Raises:
        ValueError: for a reference that is plain, or too small.
        ConfigError: for a side outside of WINDOW to MAX_SIDE.
    """
    if not WINDOW <= side <= MAX_SIDE:
        raise ConfigError(f"side={side} must lie from {WINDOW} to {MAX_SIDE}")
    height, width = reference.shape[:2]
    shrink = max(1.0, max(height, width) / side)
    size = round(width / shrink), round(height / shrink)
    if min(size) < WINDOW:
        raise ValueError(f"the reference image is {size[0]}×{size[1]} pixels; {WINDOW} a side are needed")
    target = resized(reference, size)
    sheet = np.broadcast_to(np.median(target, axis=(0, 1)).astype(np.uint8), target.shape)
    floor = measure(sheet, target)
    if floor > _NEARLY_ONE:
        raise ValueError("the reference image is plain: every plain image is like it")
    if image is None:
        return 0.0
    return min(1.0, max(0.0, (measure(resized(image, size), target) - floor) / (1 - floor)))


def ssim(a: Pixels, b: Pixels) -> float:
    """Structural similarity, the mean over places and channels, in [−1, 1].

    (2·μ_a·μ_b + C₁)(2·σ_ab + C₂) / ((μ_a² + μ_b² + C₁)(σ_a² + σ_b² + C₂)) in a Gaussian window of 11×11
    pixels, σ 1.5, with C₁ = (0.01·255)², C₂ = (0.03·255)² (Wang et al. 2004, IEEE TIP 13(4), equation 13);
    only windows that lie in the image count.
    """
    x, y = a.astype(np.float64), b.astype(np.float64)
    mean_x, mean_y = _windowed(x), _windowed(y)
    var_x, var_y = _windowed(x * x) - mean_x**2, _windowed(y * y) - mean_y**2
    shared = _windowed(x * y) - mean_x * mean_y
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    above = (2 * mean_x * mean_y + c1) * (2 * shared + c2)
    return float((above / ((mean_x**2 + mean_y**2 + c1) * (var_x + var_y + c2))).mean())


@functools.lru_cache(maxsize=2)
def clip_measure(model: str, device: str) -> Measure:
    """The cosine of two images' features under a CLIP model of a local folder.

    Raises:
        ConfigError: for a folder that holds no such model.
    """
    import torch
    from transformers import CLIPImageProcessor, CLIPModel

    try:
        # The fast processor needs torchvision's kernels on the device; this one is the same everywhere.
        processor = CLIPImageProcessor.from_pretrained(model, local_files_only=True)
        network = CLIPModel.from_pretrained(model, local_files_only=True).to(device).eval()
    except (OSError, ValueError) as error:
        raise ConfigError(f"image_clip: model={model!r} is not a folder of a CLIP model: {error}") from error

    @torch.inference_mode()
    def measure(a: Pixels, b: Pixels) -> float:
        pixels = processor(images=[np.array(a), np.array(b)], return_tensors="pt")
        found = network.get_image_features(pixel_values=pixels["pixel_values"].to(device))
        features = torch.nn.functional.normalize(getattr(found, "pooler_output", found).double(), dim=-1)
        return float(features[0] @ features[1])

    return measure


def resized(image: Pixels, size: tuple[int, int]) -> Pixels:
    """An image at (width, height), antialiased."""
    if image.shape[:2] == size[::-1]:
        return image
    found: Pixels = np.asarray(Image.fromarray(image).resize(size, Image.Resampling.BICUBIC))
    return found


def _windowed(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Means in the window along the first two axes, where it fits."""
    radius = WINDOW // 2
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / SIGMA) ** 2)
    weights /= weights.sum()
    for axis in (0, 1):
        values = correlate1d(values, weights, axis=axis)
    found: npt.NDArray[np.float64] = values[radius:-radius, radius:-radius]
    return found


def _last_image(trajectory: Trajectory) -> Pixels | None:
    """What the environment showed when it had ended the episode."""
    return _pixels(trajectory.end_media[-1]) if trajectory.end_media else None


def _reference(trajectory: Trajectory, media_index: int) -> Pixels:
    media = trajectory.sample.media
    if not -len(media) <= media_index < len(media):
        raise ValueError(f"media_index={media_index}, but the sample has {len(media)} images and videos")
    return _pixels(media[media_index])


def _pixels(medium: Media) -> Pixels:
    """Its last frame."""
    last: Pixels = medium.frames[-1]
    return last
