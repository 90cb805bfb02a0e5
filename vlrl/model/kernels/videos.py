"""Features of images and videos from one call of a tower, of LLaVA-OneVision and Gemma 4.

transformers has a method for images and one for videos. Under ZeRO-3 every call of a module with weights is
one that all ranks have to make, and one rank may have images alone where another has videos.
"""

from __future__ import annotations

import math
from types import MethodType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def install(model: Any) -> None:
    """Let models with a method for each kind take both in one."""
    for module in model.modules():
        if type(module).__name__ == "LlavaOnevisionModel":
            module.get_image_features = MethodType(_features, module)
        elif type(module).__name__ == "Gemma4Model":
            module.get_image_features = MethodType(_of_media, module)


def _of_media(core: Any, *inputs: Tensor, num_frames: Tensor | None = None, **options: Any) -> Any:
    """What Gemma4Model returns of images, among which a video is as many as `num_frames` [num_media] says."""
    output = type(core).get_image_features(core, *inputs, **options)
    if num_frames is not None:
        images = iter(output.pooler_output)
        output.pooler_output = tuple(
            torch.cat([next(images) for _ in range(max(1, number))]) for number in num_frames.tolist()
        )
    return output


def _features(
    core: Any, pixel_values: Tensor, image_sizes: Tensor, num_frames: Tensor | None = None, **options: Any
) -> Any:
    """What LlavaOnevisionModel returns of images; `num_frames` [num_media] says which are videos."""
    if num_frames is None:
        return type(core).get_image_features(core, pixel_values, image_sizes, **options)
    from transformers.models.llava_onevision.modeling_llava_onevision import image_size_to_num_patches

    config, sizes, frames = core.config, image_sizes.tolist(), num_frames.tolist()
    side = config.vision_config.image_size
    grids = config.image_grid_pinpoints
    counts = [
        number or image_size_to_num_patches(image_size=size, grid_pinpoints=grids, patch_size=side)
        for number, size in zip(frames, sizes, strict=True)
    ]
    output = core.vision_tower(pixel_values, return_dict=True, output_hidden_states=True)
    tiles = torch.split(core.multi_modal_projector(_picked(output, config)), counts)
    output.pooler_output = [
        torch.cat([pooled(of_one).flatten(0, 1), core.image_newline[None].to(of_one)])
        if number
        else core.pack_image_features([of_one], [size], image_newline=core.image_newline)[0][0]
        for of_one, number, size in zip(tiles, frames, sizes, strict=True)
    ]
    return output


def pooled(tiles: Tensor) -> Tensor:
    """Half as many features a side, of [num_tiles, side², hidden]: LlavaOnevisionModel.apply_pooling.

    By products, since CUDA adds up the gradient of a bilinear interpolation in no fixed order.
    """
    side = math.isqrt(tiles.shape[1])
    whole = torch.eye(side, device=tiles.device)[None]
    [axis] = F.interpolate(whole, size=math.ceil(side / 2), mode="linear")  # [side, halved]
    square = tiles.float().view(len(tiles), side, side, -1)
    return torch.einsum("tyxh,yi,xj->tijh", square, axis, axis).flatten(1, 2).to(tiles.dtype)


def _picked(output: Any, config: Any) -> Tensor:
    """The tower's features that the projector takes: of one layer or several, without or with all tokens."""
    layers = config.vision_feature_layer
    chosen = [output.hidden_states[i] for i in ([layers] if isinstance(layers, int) else layers)]
    whole = torch.cat(chosen, dim=-1)
    return whole[:, 1:] if config.vision_feature_select_strategy == "default" else whole
