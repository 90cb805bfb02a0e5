"""Images: what a file says of itself, and its pixels as a model sees them."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from PIL import ExifTags, Image, UnidentifiedImageError

from vlrl.errors import DataError
from vlrl.types import ByteArray, MediaKind

FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM", "AVIF", "ICO")
"""What is opened. Pillow knows more, some of which start other programs (EPS) or are seldom tested."""

MAX_JPEG_SCANS = 200
"""A progressive JPEG has about ten; each costs a pass over all pixels, whatever the file's size."""

_MAX_PNG_CHUNKS = 100_000

_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""EXIF orientation → what makes the image upright."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Frames:
    """What a model sees or hears of a medium; read-only, also after pickling.

    Attributes:
        kind: of the medium.
        sha256: of pixels, kind and timing: the key of every cache downstream.
        pixels: [num_frames, height, width, 3] uint8 RGB, or an audio's samples as `Media.frames` has them;
            may be a map of a file in the cache.
        original_size: (height, width) in pixels, upright, before resizing; (0, 0) of an audio.
        timestamps_s: [num_frames] seconds from the video's own start; empty for others.
        fps: frames, or samples, per second of these, not of the file; None for an image.
    """

    kind: MediaKind
    sha256: str
    pixels: ByteArray
    original_size: tuple[int, int]
    timestamps_s: tuple[float, ...] = ()
    fps: float | None = None

    def __post_init__(self) -> None:
        self.pixels.flags.writeable = False

    def __reduce__(self) -> tuple[Any, ...]:
        return Frames, (
            self.kind, self.sha256, self.pixels, self.original_size, self.timestamps_s, self.fps
        )  # fmt: skip


def frames_hash(
    kind: str, pixels: ByteArray, timestamps_s: tuple[float, ...] = (), fps: float | None = None
) -> str:
    """Sha256 of pixels, their shape, the kind and the timing, in hexadecimal."""
    head = json.dumps([kind, pixels.shape, timestamps_s, fps])
    digest = hashlib.sha256(head.encode())
    digest.update(np.ascontiguousarray(pixels).data)
    return digest.hexdigest()


def image_size(source: BinaryIO | Image.Image | np.ndarray, name: str, limit: int) -> tuple[int, int]:
    """(height, width) upright, from the header alone.

    Args:
        source: an open file, a PIL image or an array.
        name: the sample and the image, for errors.
        limit: most pixels that are believed.

    Raises:
        DataError: for what is not an image, is empty or claims too many pixels.
    """
    if isinstance(source, np.ndarray):
        return _array_size(source, name)
    with _as_data_error(name), _opened(source) as image:
        _check_size(image, name, limit)
        width, height = image.size
        return (width, height) if _orientation(image) >= 5 else (height, width)


def decode_image(source: BinaryIO | Image.Image | np.ndarray, name: str, limit: int) -> ByteArray:
    """[height, width, 3] uint8, upright RGB: what is transparent laid on white, 16 bits scaled to 8.

    Args and errors are those of `image_size`; an image of 32-bit numbers is refused, since they have no
    agreed white. An array that is RGB already is given back itself.
    """
    if isinstance(source, np.ndarray):
        _array_size(source, name)
        if source.dtype == np.uint8 and source.shape[2:] == (3,):  # an environment's screen, most often
            return source
        return np.array(to_rgb(_from_array(source, name), name))
    with _as_data_error(name), _opened(source) as image:
        _check_size(image, name, limit)
        if image.format in ("JPEG", "MPO") and not isinstance(source, Image.Image):
            _check_scans(source, name)
        orientation = _orientation(image)  # before loading, which changes what some formats say of it
        pixels = to_rgb(image, name)
        return np.array(pixels.transpose(_TURNS[orientation]) if orientation > 1 else pixels)


def resize(pixels: ByteArray, size: tuple[int, int]) -> ByteArray:
    """[num, height, width, 3] uint8 at exactly `size` (height, width): bicubic, antialiased.

    The arithmetic is torchvision's, so the pixels are those that Hugging Face's processors make. Pillow's
    differ by a grey level here and there, and take ten times as long.
    """
    if pixels.shape[1:3] == size:
        return pixels
    import torch

    # Still interleaved in memory: the quick way. pixels[None] has a stride of 0 at its front, and torch takes
    # it for another layout; put together of rows, it has the stride of a whole frame.
    rows = pixels.reshape(-1, *pixels.shape[2:])
    planes = torch.from_numpy(rows.reshape(pixels.shape)).permute(0, 3, 1, 2)
    resized = torch.nn.functional.interpolate(planes, size=size, mode="bicubic", antialias=True)
    result: ByteArray = resized.permute(0, 2, 3, 1).contiguous().numpy()
    return result


@contextmanager
def _as_data_error(name: str) -> Iterator[None]:
    """Whatever class a decoder raises for broken bytes becomes a DataError with the place."""
    try:
        yield
    except DataError:
        raise
    except UnidentifiedImageError as error:
        known = ", ".join(FORMATS)
        raise DataError(f"{name} is not an image that is read here ({known})") from error
    except Image.DecompressionBombError as error:
        raise DataError(f"{name} is refused by Pillow: {error}; shrink the file or drop the row") from error
    except Exception as error:  # untrusted bytes: each format's reader has its own set of exceptions
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise DataError(f"{name} is broken: {what}; replace the file or drop the row") from error


@contextmanager
def _opened(source: BinaryIO | Image.Image) -> Iterator[Image.Image]:
    """The image with its header read; an image that a caller holds stays open."""
    if isinstance(source, Image.Image):
        yield source
        return
    with Image.open(source, formats=FORMATS) as image:
        info = image.info
        if image.format == "PNG" and not {"exif", "Raw profile type exif"} & info.keys():
            # Pillow would decode all pixels to look for EXIF data behind them.
            place = source.tell()
            info["exif"] = _late_png_exif(source)
            source.seek(place)
        yield image


def _orientation(image: Image.Image) -> int:
    if image.format == "TIFF":  # Pillow turns these by itself, and says the upright size
        return 1
    try:
        value = image.getexif().get(ExifTags.Base.Orientation, 1)
    except Exception:  # broken EXIF data, of which every kind raises something else, turn nothing
        return 1
    return value if value in _TURNS else 1


def _late_png_exif(file: BinaryIO) -> bytes:
    """The eXIf chunk wherever it is, or nothing; pixels are skipped."""
    file.seek(8)
    for _ in range(_MAX_PNG_CHUNKS):
        head = file.read(8)
        length = int.from_bytes(head[:4], "big")
        if len(head) < 8 or head[4:] == b"IEND":
            break
        if head[4:] == b"eXIf":
            return file.read(min(length, 1 << 16))
        file.seek(length + 4, io.SEEK_CUR)
    return b""


def _check_size(image: Image.Image, name: str, limit: int) -> None:
    width, height = image.size
    if not width * height:
        raise DataError(f"{name} is empty ({width}x{height} pixels); drop the row")
    if width * height > limit:
        raise DataError(
            f"{name} claims {width}x{height} pixels, more than media.max_source_pixels={limit}; "
            "shrink it, or raise the limit"
        )


def _check_scans(file: BinaryIO, name: str) -> None:
    """Refuse a JPEG whose scans would take hours; 0xFFDA never occurs inside a scan's data."""
    place = file.tell()
    file.seek(0)
    scans = file.read().count(b"\xff\xda")
    file.seek(place)
    if scans > MAX_JPEG_SCANS:
        raise DataError(
            f"{name} has {scans} scans, at most {MAX_JPEG_SCANS} are decoded; save it again or drop the row"
        )


def _array_size(array: np.ndarray, name: str) -> tuple[int, int]:
    shape, kind = array.shape, array.dtype
    if kind not in (np.uint8, np.uint16) or len(shape) not in (2, 3) or shape[2:] not in ((), (3,), (4,)):
        raise DataError(
            f"{name} has shape {list(shape)} and type {kind}; give [height, width], [height, width, 3] or "
            "[height, width, 4] of uint8 or uint16 (floats between 0 and 1: times 255, rounded)"
        )
    if not array.size:
        raise DataError(f"{name} is empty (shape {list(shape)}); drop the row")
    return int(shape[0]), int(shape[1])


def _from_array(array: np.ndarray, name: str) -> Image.Image:
    with _as_data_error(name):
        return Image.fromarray(_to_8_bits(array) if array.dtype == np.uint16 else array)


def _to_8_bits(values: np.ndarray) -> ByteArray:
    """65,535 becomes 255; rounded."""
    return ((values.astype(np.uint32) * 255 + 32767) // 65535).astype(np.uint8)


def to_rgb(image: Image.Image, name: str) -> Image.Image:
    """RGB of any mode: what is transparent laid on white, 16 bits scaled to 8; DataError for 32 bits."""
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format in ("PNG", "PPM")):
        image = Image.fromarray(_to_8_bits(np.asarray(image)))
    if image.mode in ("I", "F"):
        raise DataError(
            f"{name} has 32 bits a pixel, for which there is no agreed white; convert it to 8 or 16 bits"
        )
    if not image.has_transparency_data:
        return image.convert("RGB")
    layered = image.convert("RGBA")
    white = Image.new("RGB", layered.size, "white")
    white.paste(layered, mask=layered.getchannel("A"))  # as qwen-vl-utils does it
    return white
