"""Pictures: every accepted source, resizing within limits, one hash, and errors that name the sample."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import picture
from hypothesis import assume, given
from hypothesis import strategies as st
from PIL import Image

from vlrl.errors import DataError
from vlrl.processors.media import open_image, resolve_image
from vlrl.types import Media

LIMITS = {"patch_size": 14, "merge_size": 2, "min_pixels": 56 * 56, "max_pixels": 168 * 168}


def resolve(source: Any, **limits: int) -> Media:
    return resolve_image(source, **{**LIMITS, **limits}, where="sample 'x'")


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def test_path_bytes_pil_image_and_array_give_the_same_record(tmp_path: Path) -> None:
    pixels = picture(70, 90)
    image = Image.fromarray(pixels)
    path = tmp_path / "a.png"
    image.save(path)
    first, *others = [resolve(s) for s in (pixels, image, encoded(image), path, str(path))]
    for other in others:
        assert other.sha256 == first.sha256
        assert (other.frames == first.frames).all()
        assert other.original_size == first.original_size == (70, 90)


def test_a_picture_of_the_right_size_keeps_its_pixels() -> None:
    pixels = picture(56, 84)
    media = resolve(pixels)
    assert (media.frames == pixels[None]).all()
    assert (media.kind, media.grid_thw, media.num_tokens) == ("image", (1, 4, 6), 6)


@given(st.integers(1, 700), st.integers(1, 700))
def test_sizes_are_multiples_of_a_token_within_the_limits(height: int, width: int) -> None:
    assume(max(height, width) / min(height, width) < 200)
    media = resolve(np.zeros((height, width, 3), np.uint8), min_pixels=784, max_pixels=168 * 168)
    new_height, new_width = media.size
    assert new_height % 28 == new_width % 28 == 0
    assert 784 <= new_height * new_width <= 168 * 168
    assert media.grid_thw == (1, new_height // 14, new_width // 14)
    assert media.num_tokens == (new_height // 28) * (new_width // 28)
    assert media.frames.shape == (1, new_height, new_width, 3)


@given(st.integers(28, 400), st.integers(28, 400), st.sampled_from([784, 3136, 9000]), st.integers(1, 8))
def test_resizing_twice_is_resizing_once(height: int, width: int, least: int, factor: int) -> None:
    """The engine resizes again what it is given: it must get the same size, or the run is refused early."""
    limits = {"min_pixels": least, "max_pixels": least * factor}
    try:
        once = resolve(np.zeros((height, width, 3), np.uint8), **limits)
    except DataError as error:
        assert "further apart" in str(error)
        return
    assert resolve(once.frames[0], **limits).sha256 == once.sha256


def test_limits_that_no_size_can_meet_are_refused() -> None:
    with pytest.raises(DataError, match=r"sample 'x'.*84x28.*min_pixels=3136 .*=3136; set them further"):
        resolve(np.zeros((28, 84, 3), np.uint8), min_pixels=3136, max_pixels=3136)


def test_exif_orientation_is_applied() -> None:
    pixels = np.zeros((56, 112, 3), np.uint8)
    pixels[:, :56] = 255  # white on the left
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held turned: show it rotated by 90° clockwise
    media = resolve(encoded(Image.fromarray(pixels), "PNG", exif=exif))
    assert media.original_size == (112, 56)
    assert media.frames[0, 28, 28].tolist() == [255, 255, 255]  # the left edge is on top now
    assert media.frames[0, 84, 28].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("mode", "colour", "expected"),
    [
        ("RGB", (10, 20, 30), (10, 20, 30)),
        ("L", 77, (77, 77, 77)),
        ("1", 1, (255, 255, 255)),
        ("P", 5, None),
        ("RGBA", (10, 20, 30, 255), (10, 20, 30)),
        ("RGBA", (0, 0, 0, 0), (255, 255, 255)),  # transparent is white, as Qwen's preprocessing has it
        ("LA", (0, 0), (255, 255, 255)),
        ("CMYK", (0, 0, 0, 0), (255, 255, 255)),
    ],
)
def test_every_mode_becomes_rgb(mode: str, colour: Any, expected: tuple[int, int, int] | None) -> None:
    image = Image.new(mode, (56, 56), colour)
    frames = resolve(image).frames
    assert frames.dtype == np.uint8
    assert frames.shape == (1, 56, 56, 3)
    if expected:
        assert (frames == expected).all()


def test_a_palette_picture_has_its_palette_s_colours() -> None:
    drawn = Image.new("RGB", (56, 56), (200, 10, 60)).quantize(4)
    assert drawn.mode == "P"
    assert np.abs(resolve(encoded(drawn)).frames.astype(int) - (200, 10, 60)).max() <= 4


def test_a_palette_picture_with_a_transparent_colour_is_laid_on_white() -> None:
    drawn = Image.new("P", (56, 56), 0)
    drawn.putpalette([0, 0, 0, 255, 0, 0])
    assert (resolve(encoded(drawn, transparency=0)).frames == 255).all()


def test_the_hash_is_of_what_the_model_sees() -> None:
    media = resolve(np.arange(56 * 56 * 3, dtype=np.uint8).reshape(56, 56, 3))
    assert media.sha256 == "52b7f12611c3a978b4eab83c770167edcc6c08e92d48ffefa78c1e5d9f8da71a"
    assert resolve(picture(56, 56, 1)).sha256 != resolve(picture(56, 56, 2)).sha256
    tall, wide = np.zeros((112, 56, 3), np.uint8), np.zeros((56, 112, 3), np.uint8)
    assert resolve(tall).sha256 != resolve(wide).sha256  # the same bytes in another shape


@given(st.integers(30, 500), st.integers(30, 500), st.floats(0, 1), st.floats(0, 1))
def test_points_survive_the_round_trip_to_the_model_and_back(
    height: int, width: int, across: float, down: float
) -> None:
    media = resolve(np.zeros((height, width, 3), np.uint8))
    x, y = across * width, down * height
    model_x, model_y = media.to_model(x, y)
    assert 0 <= model_x <= media.size[1] + 1e-9
    assert 0 <= model_y <= media.size[0] + 1e-9
    assert np.allclose(media.to_original(model_x, model_y), (x, y))


def test_the_example_of_media() -> None:
    media = resolve(np.zeros((100, 60, 3), np.uint8), min_pixels=784)
    assert media.size == (112, 56)
    assert media.grid_thw == (1, 8, 4)
    assert media.num_tokens == 8
    assert media.to_model(30, 50) == (28, 56)


# Bad input: one clear message each.


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("/no/such/file.png", "does not exist"),
        (b"", "not an image"),
        (b"GIF89a but no more", "broken|not an image"),
        (encoded(Image.fromarray(picture(64, 64)))[:900], "broken"),
        (np.zeros((10, 10, 3)), "uint8"),
        (np.zeros((10, 10, 7), np.uint8), "uint8"),
        (np.zeros((0, 10, 3), np.uint8), "is empty"),
        (None, "not a medium"),
        (17, "not a medium"),
        ("a\0b", "cannot be opened"),
        (np.zeros((1, 300, 3), np.uint8), "cannot be resized.*200"),
    ],
)
def test_a_bad_picture_is_an_error_that_names_the_sample(source: Any, message: str) -> None:
    with pytest.raises(DataError, match=rf"sample 'x'.*({message})"):
        resolve(source)


def test_a_text_file_is_no_picture(tmp_path: Path) -> None:
    path = tmp_path / "notes.png"
    path.write_text("hello")
    with pytest.raises(DataError, match=r"is not an image"):
        open_image(path, "sample 'x'")
