"""What a medium may be given as, and the way from there to bytes, none of which is trusted.

A source is one of
    a path, a string or a Path                         encoded bytes
    a data: URL, or base64 text of an encoded file     an http(s) URL whose host media.allowed_hosts names
    a PIL image                                        an array of [height, width(, 3 or 4)] uint8 or uint16
    {"bytes": …, "path": …}, a Hugging Face feature    for a video also a list of any of these: its frames
    {"array": …, "sampling_rate": …}, samples of an audio, see `vlrl.processors.media.audio.wave_file`
"""

from __future__ import annotations

import base64
import binascii
import io
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from PIL import Image

from vlrl.config.data import MediaConfig
from vlrl.errors import DataError
from vlrl.processors.media.audio import wave_file

MIB = 1 << 20
_MIN_BASE64 = 24
"""Shorter text is a path; no image is this small."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """An encoded file: on disk, in memory, or behind a URL.

    Attributes:
        name: the sample and the source, for errors.
        max_bytes: more are refused before they are read.
        path: of a file, which need not exist.
        data: of bytes already there.
        url: of what is still to be downloaded.
    """

    name: str
    max_bytes: int
    path: Path | None = None
    data: bytes | None = None
    url: str | None = None

    def open(self) -> BinaryIO:
        """The bytes as an open file.

        Raises:
            DataError: if it does not exist, is not an ordinary file, or is too big.
        """
        if self.data is not None:
            return io.BytesIO(self.data)
        if self.path is None:
            raise DataError(f"{self.name} has not been downloaded; read it through a MediaStore")
        try:
            # A named pipe would block for ever, and a device may have no end: look before reading.
            file = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise DataError(f"{self.name} does not exist; check the path and image_root") from error
        except (OSError, ValueError) as error:  # ValueError: a zero byte in the path
            raise DataError(f"{self.name} cannot be opened: {error}") from error
        opened = os.fdopen(file, "rb") if stat.S_ISREG((status := os.fstat(file)).st_mode) else None
        if opened is None:
            os.close(file)
            raise DataError(f"{self.name} is not an ordinary file; give a file with an encoded medium")
        if status.st_size > self.max_bytes:
            opened.close()
            _refuse_size(self.name, status.st_size, self.max_bytes)
        return opened

    def read(self) -> bytes:
        """All bytes; errors as in `open`."""
        if self.data is not None:
            return self.data
        with self.open() as file:
            data = file.read(self.max_bytes + 1)
        if len(data) > self.max_bytes:
            _refuse_size(self.name, len(data), self.max_bytes)
        return data


Located: TypeAlias = "Encoded | Image.Image | np.ndarray | list[Encoded | Image.Image | np.ndarray]"


def locate(source: Any, config: MediaConfig, where: str) -> Located:
    """Find out which kind of source it is; nothing is read or fetched yet.

    Args:
        source: see this file's first lines.
        config: limits, and hosts that URLs may name.
        where: the sample's id, for errors.

    Raises:
        DataError: for anything that is not a source, for a file: URL, and for bytes over the limit.
    """
    if isinstance(source, list | tuple):
        frames = [locate(frame, config, f"{where}: frame {i}") for i, frame in enumerate(source)]
        if any(isinstance(frame, list) for frame in frames):
            raise DataError(f"{where}: a frame is itself a list; give one list of images")
        return [frame for frame in frames if not isinstance(frame, list)]
    if isinstance(source, Mapping):
        return _from_feature(source, config, where)
    if isinstance(source, Image.Image | np.ndarray):
        return source
    if isinstance(source, bytes | bytearray | memoryview):
        return _from_bytes(bytes(source), f"{where}: {len(source)} bytes", config)
    if isinstance(source, Path):
        return _from_path(source, config, where)
    if isinstance(source, str):
        return _from_text(source, config, where)
    raise DataError(
        f"{where}: a {type(source).__name__} is not a medium; give a path, encoded bytes, base64, a data: or "
        "http(s) URL, a PIL image, or a [height, width, 3] uint8 array; for a video a list of images also"
    )


def under_root(root: Path, name: str, where: str) -> Path:
    """The file that a dataset's row names, symbolic links resolved, if it lies in the dataset's folder.

    Args:
        root: the folder that no row may lead out of.
        name: relative to it, or absolute and within it.
        where: the row, for errors.

    Raises:
        DataError: if it leads out of `root`, by "..", an absolute path or a link.
    """
    try:
        base = root.resolve()
        path = (base / name).resolve()
    except (OSError, ValueError, RuntimeError) as error:  # a zero byte, a name too long, a loop of links
        raise DataError(f"{where}: {_short(name)} is not a path: {error}") from error
    if not path.is_relative_to(base):
        raise DataError(
            f"{where}: {_short(name)} leads to {path}, out of {base}; copy the file there, or name a folder "
            "that holds both as the root"
        )
    return path


def names_file(text: str) -> bool:
    """True for text that is a path: neither a URL nor base64 of a medium."""
    url = _scheme(text) in ("data", "http", "https", "file") or "://" in text[:16]
    return not url and sniff(_base64_head(text)) is None


def _scheme(text: str) -> str:
    """http, data, … of a URL; "" for a path or base64."""
    return text[:8].partition(":")[0].lower() if ":" in text[:8] else ""


def _from_feature(source: Mapping[str, Any], config: MediaConfig, where: str) -> Located:
    if source.get("array") is not None:
        return _from_bytes(wave_file(source, where), f"{where}: an array of samples", config)
    data, path = source.get("bytes"), source.get("path")
    if isinstance(data, bytes | bytearray | memoryview):
        named = f" {path}" if isinstance(path, str) else ""
        return _from_bytes(bytes(data), f"{where}:{named} {len(data)} bytes", config)
    if isinstance(path, str | Path):
        return locate(path, config, where)
    raise DataError(
        f"{where}: a medium given as a mapping needs 'bytes', 'path' or 'array', not {sorted(source)}"
    )


def _from_text(text: str, config: MediaConfig, where: str) -> Encoded:
    scheme = _scheme(text)
    max_bytes = int(config.max_file_mib * MIB)
    if scheme == "data":
        head, comma, payload = text.partition(",")
        if not comma or not head.endswith(";base64"):
            raise DataError(f"{where}: {_short(text)}: a data: URL needs ';base64,' before its bytes")
        name = f"{where}: a data: URL"
        return _from_bytes(_decode_base64(payload, name, max_bytes), name, config)
    if scheme in ("http", "https"):
        return Encoded(f"{where}: {_short(text)}", max_bytes, url=text)
    if scheme == "file":
        raise DataError(f"{where}: {_short(text)}: file: URLs are refused; give the path itself")
    if sniff(_base64_head(text)) is not None:
        name = f"{where}: base64 text of {len(text)} characters"
        return _from_bytes(_decode_base64(text, name, max_bytes), name, config)
    if scheme and "://" in text[:16]:
        raise DataError(f"{where}: {_short(text)}: only http and https URLs are fetched")
    return _from_path(Path(text), config, where)


def _from_path(path: Path, config: MediaConfig, where: str) -> Encoded:
    return Encoded(f"{where}: {_short(str(path))}", int(config.max_file_mib * MIB), path=path)


def _from_bytes(data: bytes, name: str, config: MediaConfig) -> Encoded:
    max_bytes = int(config.max_file_mib * MIB)
    if len(data) > max_bytes:
        _refuse_size(name, len(data), max_bytes)
    return Encoded(name, max_bytes, data=data)


def sniff(head: bytes) -> str | None:
    """Return "image", "video" or "audio" by a file's first 16 bytes; None for others. A gif is an image."""
    if head[:4] == b"RIFF":
        return {b"WEBP": "image", b"AVI ": "video", b"WAVE": "audio"}.get(head[8:12])
    if head.startswith((b"fLaC", b"OggS", b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2", b"\xff\xf1")):
        return "audio"
    if head[4:8] == b"ftyp" and head[8:11] == b"M4A":
        return "audio"
    if head[4:8] == b"ftyp":
        return "image" if head[8:12] in (b"avif", b"avis") else "video"
    if head[4:8] in (b"moov", b"mdat", b"free", b"skip", b"wide") or head[:4] == b"\x1aE\xdf\xa3":
        return "video"
    images = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8", b"II*\0", b"MM\0*", b"\0\0\1\0")
    return "image" if head.startswith(images) or (head[:2] == b"BM" and head[6:10] == bytes(4)) else None


def _base64_head(text: str) -> bytes:
    """The first bytes that a text encodes, if it looks like base64 at all; "/9j/…" is a JPEG, not a path.

    "//server/share" is a path; so an mp3 without ID3 tags, which begins like it, is not told by its text.
    """
    head = "" if text.startswith("//") else text[:_MIN_BASE64]
    try:
        return base64.b64decode(head, validate=True) if len(head) == _MIN_BASE64 else b""
    except (binascii.Error, ValueError):
        return b""


def _decode_base64(text: str, name: str, max_bytes: int) -> bytes:
    if len(text) * 3 // 4 > max_bytes + 4:
        _refuse_size(name, len(text) * 3 // 4, max_bytes)
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataError(f"{name} is not base64: {error}") from error


def _refuse_size(name: str, num_bytes: int, max_bytes: int) -> None:
    raise DataError(
        f"{name} takes {num_bytes / MIB:.3g} MiB, more than media.max_file_mib={max_bytes / MIB:.3g}; "
        "shrink it, or raise the limit"
    )


def _short(text: str) -> str:
    return repr(text if len(text) <= 120 else f"{text[:100]}…{text[-10:]}")
