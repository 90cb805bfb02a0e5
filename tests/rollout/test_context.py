"""What an environment shows, made a message of: once for all who see the same."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
from builders import ScriptedPolicy, make_config, make_context, open_tiny, random_image
from PIL import Image

from vlrl.protocols import Observation
from vlrl.rollout.context import NUM_KEPT_MESSAGES, RolloutContext, media_message
from vlrl.rollout.session import MediaMessage


def tell(context: RolloutContext, *observations: Observation) -> list[MediaMessage]:
    async def run() -> list[MediaMessage]:
        return [await media_message(each, "s", context) for each in observations]

    return asyncio.run(run())


def setting_of(model: Path) -> RolloutContext:
    return make_context(ScriptedPolicy(lambda *_: []), open_tiny(model), make_config(model))


def test_who_is_shown_the_same_has_the_same_images_and_its_own_summary(tiny_model: Path) -> None:
    context = setting_of(tiny_model)
    first, again, other = tell(
        context,
        Observation("look", [random_image(56, 84)], summary="one"),
        Observation("look", [random_image(56, 84)], summary="two"),
        Observation("look", [random_image(56, 84, seed=1)], summary="two"),
    )
    assert again.media[0] is first.media[0] and again.seen == first.seen and again.message == first.message
    assert (first.summary, again.summary) == ("one", "two")
    assert other.seen != first.seen and other.media[0].sha256 != first.media[0].sha256


def test_another_role_is_another_message(tiny_model: Path) -> None:
    said = tell(setting_of(tiny_model), Observation("x"), Observation("x", role="tool"))
    assert [each.message["role"] for each in said] == ["user", "tool"]


def test_images_that_differ_in_what_they_let_through_are_not_taken_for_each_other(tiny_model: Path) -> None:
    opaque = np.zeros((56, 84, 4), np.uint8)
    opaque[..., 3] = 255
    shown = [Observation("x", [Image.fromarray(p)]) for p in (opaque, np.zeros((56, 84, 4), np.uint8))]
    black, white = tell(setting_of(tiny_model), *shown)
    pixels: list[Any] = [black.media[0].frames, white.media[0].frames]
    assert pixels[0].max() == 0 and pixels[1].min() == 255


def test_an_image_with_transparency_is_not_taken_for_an_array_of_its_colours(tiny_model: Path) -> None:
    clear = Image.fromarray(np.zeros((56, 84, 4), np.uint8))
    shown = [Observation("x", [image]) for image in (np.zeros((56, 84, 3), np.uint8), clear)]
    black, white = tell(setting_of(tiny_model), *shown)
    pixels: list[Any] = [black.media[0].frames, white.media[0].frames]
    assert pixels[0].max() == 0 and pixels[1].min() == 255


def test_few_are_kept(tiny_model: Path) -> None:
    context = setting_of(tiny_model)
    tell(context, *(Observation(str(number)) for number in range(2 * NUM_KEPT_MESSAGES)))
    assert len(context.messages) == NUM_KEPT_MESSAGES
