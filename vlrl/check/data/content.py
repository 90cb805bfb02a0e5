"""Hashes of what a row holds, so that equal rows are found wherever and however they are stored."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vlrl.config.data import MediaConfig
from vlrl.processors.media.sources import Encoded, Located, locate


def source_sha256(source: Any, config: MediaConfig, where: str) -> str:
    """Hash of a medium's content: the bytes of its file, wherever they are kept, or its pixels.

    Media behind a URL are identified by the URL: nothing is fetched. Two files of one image in different
    formats differ.

    Raises:
        DataError: if a file cannot be read.
    """
    return _sha256(locate(source, config, where))


def prompt_sha256(messages: Sequence[Mapping[str, Any]], env: Mapping[str, Any] | None = None) -> str:
    """Hash of a conversation's text and of where its media stand; case and white space do not matter.

    Episodes that begin alike are not the same: `env`, a row's environment and seed, identifies them.
    """
    pieces = [json.dumps(env, sort_keys=True, default=str)] if env else []
    for message in messages:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        said = " ".join(str(p.get("text", "")) if p["type"] == "text" else f"<{p['type']}>" for p in parts)
        pieces.append(f"{message['role']} {' '.join(unicodedata.normalize('NFKC', said).casefold().split())}")
    return hashlib.sha256("\n".join(pieces).encode("utf-8", "replace")).hexdigest()


def answer_sha256(row: Mapping[str, Any]) -> str:
    """Hash of what the row says is right."""
    said = [row[key] for key in ("rejected", "label") if row.get(key) is not None]
    text = json.dumps([row.get("answer"), row.get("target"), *said], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _sha256(located: Located) -> str:
    if isinstance(located, list):  # the frames of a video
        return hashlib.sha256("".join(map(_sha256, located)).encode()).hexdigest()
    if not isinstance(located, Encoded):
        pixels = np.asarray(located)
        digest = hashlib.sha256(f"{pixels.shape} {pixels.dtype}".encode())
        digest.update(np.ascontiguousarray(pixels).data)
        return digest.hexdigest()
    if located.url is not None:
        return hashlib.sha256(located.url.encode("utf-8", "replace")).hexdigest()
    with located.open() as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
