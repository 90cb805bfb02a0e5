"""Verdicts on disk, one file each, named by the hash of all that was asked."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class VerdictCache:
    """A folder of verdicts. Any number of processes may share it: an entry appears whole, by renaming."""

    def __init__(self, folder: Path) -> None:
        """Open the folder; made if missing.

        Raises:
            OSError: if it cannot be made.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    def get(self, key: str) -> Mapping[str, Any] | None:
        """The verdict of a question; None if there is none, or its file is not what `put` wrote."""
        try:
            entry = json.loads(self._path(key).read_bytes())
        except (OSError, ValueError, RecursionError):  # missing, or broken: asked for again and overwritten
            return None
        whole = isinstance(entry, dict) and entry.get("key") == key and isinstance(entry.get("verdict"), dict)
        return entry["verdict"] if whole else None

    def put(self, key: str, verdict: Mapping[str, Any], model: str) -> None:
        """Store a verdict.

        Raises:
            OSError: if the disk is full or cannot be written.
        """
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"tmp-{uuid.uuid4().hex}")
        try:
            entry = {"key": key, "model": model, "verdict": verdict}
            temporary.write_text(json.dumps(entry), encoding="utf-8")
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"
