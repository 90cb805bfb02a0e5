"""Images: every accepted kind, upright RGB as Hugging Face makes it, and errors that name the sample."""

from __future__ import annotations

import base64
import io
import pickle
import struct
import tracemalloc
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import random_image
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps
from torch.utils._python_dispatch import TorchDispatchMode

from vlrl.config.data import MediaConfig
from vlrl.errors import DataError
from vlrl.processors.media.image import FORMATS, Frames, frames_hash, resize
from vlrl.processors.media.store import MediaStore

WHERE = "sample 'x'"


@pytest.fixture(scope="module")
def store() -> MediaStore:
    """A store without a cache, so that every test decodes."""
    return MediaStore(MediaConfig(cache_gib=0, max_source_pixels=200_000, max_file_mib=1))


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def seen(store: MediaStore, source: Any, size: tuple[int, int] | None = None) -> np.ndarray:
    """[height, width, 3] as the model sees it, at its own size unless told."""
    frames = store.image(source, size or store.image_size(source, WHERE), WHERE)
    assert frames.pixels.dtype == np.uint8
    assert not frames.pixels.flags.writeable
    assert (frames.kind, frames.timestamps_s, frames.fps) == ("image", (), None)
    assert frames.sha256 == frames_hash("image", frames.pixels)
    return frames.pixels[0]


def test_every_kind_of_source_gives_the_same_record(tmp_path: Path, store: MediaStore) -> None:
    pixels = random_image(70, 90)
    image = Image.fromarray(pixels)
    path = tmp_path / "a.png"
    image.save(path)
    data = path.read_bytes()
    text = base64.b64encode(data).decode()
    sources = [
        *(pixels, image, data, bytearray(data), path, str(path)),
        *(
            text,
            "\n".join(text[i : i + 76] for i in range(0, len(text), 76)),
            f"data:image/png;base64,{text}",
        ),
        *({"bytes": data, "path": None}, {"bytes": None, "path": str(path)}, {"path": path}),
    ]
    first, *others = [store.image(source, (56, 84), WHERE) for source in sources]
    assert first.original_size == (70, 90)
    for source, other in zip(sources[1:], others, strict=True):
        assert other is first  # alive already: one copy of the pixels
        assert store.image_size(source, WHERE) == (70, 90)


@pytest.mark.parametrize("kind", [k for k in FORMATS if k != "ICO"])
def test_every_format_is_read(kind: str, store: MediaStore) -> None:
    drawn = np.stack([*np.mgrid[0:64, 0:48], np.full((64, 48), 90)], -1).astype(np.uint8) * 2
    lossy = kind in ("JPEG", "WEBP", "AVIF", "GIF")
    back = seen(store, encoded(Image.fromarray(drawn), kind))
    assert back.shape == drawn.shape
    assert np.abs(back.astype(int) - drawn).mean() < (4 if lossy else 1e-9)


@pytest.mark.parametrize(
    ("mode", "colour", "expected"),
    [
        ("RGB", (10, 20, 30), (10, 20, 30)),
        ("L", 77, (77, 77, 77)),
        ("1", 1, (255, 255, 255)),
        ("P", 5, None),
        ("RGBA", (10, 20, 30, 255), (10, 20, 30)),
        ("RGBA", (0, 0, 0, 0), (255, 255, 255)),  # transparent is white, as Qwen's preprocessing has it
        ("RGBA", (0, 0, 0, 51), (204, 204, 204)),
        ("LA", (0, 0), (255, 255, 255)),
        ("PA", (0, 0), (255, 255, 255)),
        ("CMYK", (0, 0, 0, 0), (255, 255, 255)),
        ("YCbCr", (128, 128, 128), (128, 128, 128)),
        ("I;16", 65535, (255, 255, 255)),
        ("I;16", 32896, (128, 128, 128)),
        ("I;16B", 257, (1, 1, 1)),
    ],
)
def test_every_mode_becomes_rgb(mode: str, colour: Any, expected: Any, store: MediaStore) -> None:
    pixels = seen(store, Image.new(mode, (56, 48), colour))
    assert pixels.shape == (48, 56, 3)
    if expected:
        assert (pixels == expected).all()


@pytest.mark.parametrize("mode", ["I", "F"])
def test_32_bits_a_pixel_have_no_rule(mode: str, store: MediaStore) -> None:
    with pytest.raises(DataError, match=r"sample 'x'.*32 bits a pixel.*convert it to 8 or 16 bits"):
        seen(store, Image.new(mode, (8, 8), 7))


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "PPM"])
def test_16_bits_are_scaled_not_cut(kind: str, store: MediaStore) -> None:
    ramp = np.linspace(0, 65535, 64 * 32).round().astype(np.uint16).reshape(64, 32)
    back = seen(store, encoded(Image.fromarray(ramp), kind))
    assert np.abs(back[..., 0].astype(float) - ramp / 257).max() <= 0.5
    assert (back == seen(store, ramp)).all()
    colours = np.stack([ramp, ramp, ramp], -1)
    assert (seen(store, colours) == back).all()


def test_arrays_of_one_three_and_four_channels(store: MediaStore) -> None:
    grey = random_image(40, 30)[..., 0]
    assert (seen(store, grey) == grey[..., None]).all()
    clear = np.dstack([random_image(40, 30), np.zeros((40, 30), np.uint8)])
    assert (seen(store, clear) == 255).all()


def test_an_array_is_copied(store: MediaStore) -> None:
    screen = random_image(56, 56)
    kept, before = seen(store, screen), screen.copy()
    screen[:] = 0
    assert (kept == before).all()


@pytest.mark.parametrize("kind", ["plain", "read-only", "flipped", "transposed"])
def test_an_array_that_is_resized_is_not_copied_before_unless_torch_cannot_read_it(
    store: MediaStore, kind: str
) -> None:
    """A copy of a screenshot is a fiftieth of a rollout worker's turn."""
    screen = random_image(320, 320)
    expected = seen(store, screen.copy(), (308, 336))
    given = {"flipped": screen[::-1], "transposed": screen.transpose(1, 0, 2)}.get(kind, screen)
    given.flags.writeable = kind != "read-only"
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = store.image(given, (308, 336), "s").pixels[0]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (peak < screen.nbytes) == (kind == "plain")
    if kind in ("plain", "read-only"):
        assert (found == expected).all()
    else:
        assert (found == seen(store, given.copy(), (308, 336))).all()


class Operations(TorchDispatchMode):
    """Names of what torch computes within the block."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(function.overloadpacket.__name__)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("num_frames", [1, 3])
def test_pixels_stay_interleaved_while_they_are_resized(num_frames: int) -> None:
    """Else torch resizes plane by plane and its result is copied: 4.4 ms of a screenshot in place of 1.8."""
    frames = np.stack([random_image(70, 90, seed) for seed in range(num_frames)])
    pixels = frames if num_frames > 1 else frames[0][None]
    with Operations() as done:
        found = resize(pixels, (56, 84))
    assert "_upsample_bicubic2d_aa" in done.names
    assert not {"clone", "copy_", "_to_copy"} & {*done.names}
    assert found.flags.c_contiguous


def test_a_palette_image_has_its_palette_s_colours(store: MediaStore) -> None:
    drawn = Image.new("RGB", (56, 56), (200, 10, 60)).quantize(4)
    assert drawn.mode == "P"
    assert np.abs(seen(store, encoded(drawn)).astype(int) - (200, 10, 60)).max() <= 4


def test_a_palette_image_with_a_transparent_colour_is_laid_on_white(store: MediaStore) -> None:
    drawn = Image.new("P", (56, 56), 0)
    drawn.putpalette([0, 0, 0, 255, 0, 0])
    for kind in ("PNG", "GIF"):
        assert (seen(store, encoded(drawn, kind, transparency=0)) == 255).all()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_applied_and_known_from_the_header(
    kind: str, orientation: int, store: MediaStore
) -> None:
    pixels = np.zeros((48, 96, 3), np.uint8)
    pixels[:24, :48] = 255  # white at the top left
    exif = Image.Exif()
    exif[0x0112] = orientation
    options: dict[str, Any] = {"lossless": True} if kind == "WEBP" else {}
    data = encoded(Image.fromarray(pixels), kind, exif=exif, **options)
    expected = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB"))
    assert store.image_size(data, WHERE) == expected.shape[:2]
    assert (seen(store, data) == expected).all()
    assert (seen(store, Image.open(io.BytesIO(data))) == expected).all()
    assert (expected.shape[0] > expected.shape[1]) == (orientation >= 5)  # so the file does say it


def test_broken_exif_turns_nothing(store: MediaStore) -> None:
    data = encoded(Image.fromarray(random_image(48, 64)), "JPEG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xffjunk")
    assert seen(store, data).shape == (48, 64, 3)


def test_the_first_frame_of_an_animation_is_its_image(store: MediaStore) -> None:
    frames = [Image.new("L", (40, 30), grey) for grey in (10, 200)]
    for kind in ("GIF", "WEBP", "PNG"):
        data = encoded(frames[0], kind, save_all=True, append_images=frames[1:])
        assert abs(int(seen(store, data)[15, 20, 0]) - 10) <= 2


# Resizing.


def test_an_image_of_the_right_size_keeps_its_pixels(store: MediaStore) -> None:
    pixels = random_image(56, 84)
    assert (seen(store, pixels) == pixels).all()


@given(st.integers(1, 80), st.integers(1, 80), st.integers(1, 80), st.integers(1, 80))
def test_the_size_is_exactly_the_one_asked_for(height: int, width: int, high: int, wide: int) -> None:
    frames = MediaStore(MediaConfig(cache_gib=0)).image(random_image(height, width), (high, wide), WHERE)
    assert frames.pixels.shape == (1, high, wide, 3)
    assert frames.original_size == (height, width)


@pytest.mark.parametrize("size", [(90, 130), (301, 222), (400, 500)])
def test_resizing_is_hugging_face_s(size: tuple[int, int], store: MediaStore, tiny_model: Path) -> None:
    from transformers import AutoImageProcessor

    processor = AutoImageProcessor.from_pretrained(
        tiny_model, min_pixels=56 * 56, max_pixels=112 * 112, do_rescale=False, do_normalize=False
    )
    photo = random_image(*size)  # noise, the hardest case
    theirs = processor(images=[Image.fromarray(photo)], return_tensors="np")
    _, rows, columns = theirs["image_grid_thw"][0].tolist()
    ours = seen(store, photo, (rows * 14, columns * 14))
    assert ours.shape[:2] != size
    ours_patched = processor(images=[np.array(ours)], do_resize=False, return_tensors="np")
    assert (ours_patched["pixel_values"] == theirs["pixel_values"]).all()


def test_resizing_is_qwen_vl_utils_s_within_two_grey_levels(store: MediaStore) -> None:
    """It resizes with Pillow, which rounds between its two passes; on a photo of gradients and fine noise."""
    y, x = np.mgrid[0:300, 0:400]
    noise = np.random.default_rng(0).normal(0, 12, (300, 400, 3))
    photo = np.stack([128 + 90 * np.sin(x / 97), 128 + 80 * np.cos(x / 61 - y / 83), 0.5 * y], -1) + noise
    image = Image.fromarray(photo.clip(0, 255).astype(np.uint8))
    for size in ((56, 84), (224, 308), (420, 560)):
        theirs = np.asarray(image.resize((size[1], size[0]), Image.Resampling.BICUBIC))
        apart = np.abs(seen(store, image, size).astype(int) - theirs)
        assert apart.max() <= 2
        assert apart.mean() < 0.2


# The record.


def test_the_hash_is_of_pixels_kind_and_timing(store: MediaStore) -> None:
    pixels = np.arange(56 * 56 * 3, dtype=np.uint8).reshape(1, 56, 56, 3)
    assert frames_hash("image", pixels) == "52b7f12611c3a978b4eab83c770167edcc6c08e92d48ffefa78c1e5d9f8da71a"
    hashes = {
        frames_hash("image", pixels),
        frames_hash("video", pixels),
        frames_hash("image", pixels.reshape(1, 28, 112, 3)),
        frames_hash("video", pixels, (0.0,), 2.0),
        frames_hash("video", pixels, (0.0,), 3.0),
        frames_hash("video", pixels, (0.5,), 2.0),
    }
    assert len(hashes) == 6


def test_a_record_survives_pickling_read_only(store: MediaStore) -> None:
    frames = store.image(random_image(28, 28), (28, 28), WHERE)
    copy = pickle.loads(pickle.dumps(frames))
    assert isinstance(copy, Frames)
    assert not copy.pixels.flags.writeable
    assert (copy.pixels == frames.pixels).all()
    assert (copy.sha256, copy.original_size) == (frames.sha256, frames.original_size)


# Bad input: one clear message each.


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("/no/such/file.png", "does not exist"),
        (b"", "not an image"),
        (b"GIF89a but no more", "is broken|not an image"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not an image"),  # would start Ghostscript
        (encoded(Image.fromarray(random_image(64, 64)))[:900], "is broken"),
        (np.zeros((10, 10, 3)), r"type float64; give .* uint8 or uint16 \(floats between 0 and 1"),
        (np.zeros((10, 10, 3), np.int32), "type int32"),
        (np.zeros((10, 10, 7), np.uint8), r"shape \[10, 10, 7\]"),
        (np.zeros((1, 10, 10, 3), np.uint8), r"shape \[1, 10, 10, 3\]"),
        (np.array([object()]), "type object"),
        (np.zeros((0, 10, 3), np.uint8), "is empty"),
        (Image.new("RGB", (0, 5)), "is empty"),
        (None, "a NoneType is not a medium"),
        (17, "a int is not a medium"),
        ({"url": "x"}, "needs 'bytes', 'path' or 'array'"),
        ([random_image(8, 8)], "a list of 1 images was given for one image"),
        ("a\0b", "cannot be opened"),
        (Image.new("RGB", (500, 500)), "claims 500x500 pixels, more than media.max_source_pixels=200000"),
    ],
)
def test_a_bad_image_is_an_error_that_names_the_sample(source: Any, message: str, store: MediaStore) -> None:
    with pytest.raises(DataError, match=rf"sample 'x'.*({message})"):
        store.image(source, (28, 28), WHERE)


def test_a_header_that_claims_too_much_is_refused_without_decoding(store: MediaStore) -> None:
    """A real decompression bomb: 3.6 gigapixels of nothing in a kilobyte."""
    bomb = bytearray(encoded(Image.new("1", (64, 64))))
    bomb[16:24] = struct.pack(">II", 60_000, 60_000)
    bomb[29:33] = struct.pack(">I", zlib.crc32(bomb[12:29]))
    for use in (store.image_size, lambda source, where: store.image(source, (28, 28), where)):
        with pytest.raises(DataError, match=r"sample 'x'.*(refused by Pillow|claims 60000x60000)"):
            use(bytes(bomb), WHERE)


def test_a_jpeg_of_countless_scans_is_refused(store: MediaStore) -> None:
    """Each scan of a progressive JPEG is a pass over all pixels, and takes a few bytes."""
    data = encoded(Image.fromarray(random_image(64, 64)), "JPEG", progressive=True)
    scan = data[data.rindex(b"\xff\xda") : -2]
    assert seen(store, data).shape == (64, 64, 3)
    with pytest.raises(DataError, match=r"has \d+ scans"):
        seen(store, data[:-2] + scan * 300 + data[-2:])


def test_a_text_file_is_no_image(tmp_path: Path, store: MediaStore) -> None:
    path = tmp_path / "notes.png"
    path.write_text("hello")
    with pytest.raises(DataError, match=r"notes\.png' is not an image that is read here \(JPEG, PNG"):
        store.image_size(path, WHERE)
