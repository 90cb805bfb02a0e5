"""Fingerprints of a source's rows and of a model's weights, without reading all of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vlrl.data.rows import Rows
from vlrl.errors import DataError
from vlrl.storage.model_cache import local_model

NUM_ROWS_READ = 256
"""Rows that a fingerprint reads, evenly spread from the first to the last."""

BLOCK_BYTES, NUM_BLOCKS = 2**16, 16
"""Read of each file of weights, evenly spread: fine-tuned weights differ nearly everywhere."""


def data_fingerprint(rows: Rows) -> str:
    """16 hexadecimal digits of the number of rows and of what NUM_ROWS_READ of them ask and answer.

    Folders of media and ids do not count: data may move. A medium that is given as bytes or pixels does.
    """
    numbers = sorted({round(i) for i in np.linspace(0, len(rows) - 1, min(NUM_ROWS_READ, len(rows)))})
    digest = hashlib.sha256(str(len(rows)).encode())
    for number in numbers:
        digest.update(json.dumps(_asked(rows, number), sort_keys=True).encode())
    return digest.hexdigest()[:16]


def model_fingerprint(path: str) -> str:
    """16 hexadecimal digits of a model's configuration and of blocks of its weights; of its name on the hub.

    Raises:
        ConfigError: as `vlrl.storage.model_cache.local_model` does.
    """
    folder = Path(local_model(path))
    if not folder.is_dir():
        return hashlib.sha256(f"hub {path}".encode()).hexdigest()[:16]
    digest = hashlib.sha256()
    for file in sorted([*folder.glob("config.json"), *folder.glob("*.safetensors"), *folder.glob("*.bin")]):
        size = file.stat().st_size
        digest.update(f"{file.name} {size}".encode())
        with file.open("rb") as stream:
            for begin in sorted({round(i) for i in np.linspace(0, max(0, size - BLOCK_BYTES), NUM_BLOCKS)}):
                stream.seek(begin)
                digest.update(stream.read(BLOCK_BYTES))
    return digest.hexdigest()[:16]


def _asked(rows: Rows, number: int) -> Any:
    """What of a row is the same wherever it lies, in values that JSON has; None for one that is broken."""
    try:
        row = rows[number]
    except DataError:
        return None
    asked = {key: row.get(key) for key in ("messages", "answer", "target", "env")}
    form = {key: row[key] for key in ("structured_outputs",) if row.get(key)}
    return _plain(asked | form)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _medium(each) if key in MEDIA else _plain(each) for key, each in value.items()}
    if isinstance(value, bytes | bytearray | np.ndarray | Image.Image):
        return _medium(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | float) else repr(value)


MEDIA = ("image", "video", "audio")
"""Keys of a message's part under which a medium stands."""


def _medium(value: Any) -> Any:
    """A path's last part, or the digest of bytes or pixels."""
    if isinstance(value, str):
        return Path(value).name
    if isinstance(value, bytes | bytearray):
        return hashlib.sha256(value).hexdigest()
    if isinstance(value, np.ndarray | Image.Image):
        pixels = np.ascontiguousarray(value)
        return [list(pixels.shape), hashlib.sha256(pixels.tobytes()).hexdigest()]
    return _plain(value)
