"""RUN/run.log: what every process of a run has said, a JSON object a line."""

from __future__ import annotations

import json
import os
import re
import threading
from datetime import UTC, datetime
from pathlib import Path

LOG_FILE = "run.log"
"""Lines of `time` (UTC, ISO 8601, when it was read), `run`, `process` (driver, rank 0, engine 1, …), `node`,
`step` (that is made, from 0; null between phases), `sample` (the first one that the message names), `level`,
`event` (as in events.jsonl) and `message`."""
SAMPLE = re.compile(r"\bsample (['\"])(.*?)\1")
"""How messages and errors name one, see `vlrl.scoring.compose.RewardFailure`."""
MAX_BYTES = 200 * 2**20
"""A file of this size becomes run.log.1, in place of the one before."""


class RunLog:
    """Adds lines, from any thread; a disk without room loses lines and stops nothing."""

    def __init__(self, run_dir: Path, node: str) -> None:
        """Open the file, to which a resumed run adds.

        Args:
            run_dir: the run's folder.
            node: the driver's.
        """
        self._path, self._run, self._node = run_dir / LOG_FILE, run_dir.name, node
        self._lock = threading.Lock()
        self._file = self._path.open("a", encoding="utf-8", errors="backslashreplace", buffering=1)

    def write(
        self,
        message: str,
        *,
        process: str = "driver",
        node: str | None = None,
        step: int | None = None,
        level: str = "info",
        event: str = "",
    ) -> None:
        """Add a line."""
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "run": self._run,
            "process": process,
            "node": node or self._node,
            "step": step,
            "sample": named[2] if (named := SAMPLE.search(message)) else None,
            "level": level,
            "event": event or None,
            "message": message,
        }
        with self._lock:
            if self._file.closed:
                return
            try:
                self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
                if self._file.tell() > MAX_BYTES:
                    self._begin_again()
            except OSError:
                return

    def close(self) -> None:
        """Close the file; what comes later is left out. Safe to call twice."""
        with self._lock:
            try:
                self._file.close()
            except OSError:  # without room for the last line
                return

    def _begin_again(self) -> None:
        self._file.close()
        os.replace(self._path, self._path.with_name(LOG_FILE + ".1"))
        self._file = self._path.open("a", encoding="utf-8", errors="backslashreplace", buffering=1)
