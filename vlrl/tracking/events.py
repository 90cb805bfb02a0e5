"""Events of a run besides its steps: shown on the console, and kept in RUN/events.jsonl."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from vlrl.tracking.console import TrainConsole

EVENTS_FILE = "events.jsonl"
"""One JSON object a line: `time` (UTC, ISO 8601), `event` (a name), `text`. A resumed run adds to it."""


class Events:
    """Reports events to people and tools; nothing is written before something happens.

    Attributes:
        counts: how often each event has happened.
        being_told: names of events by their sentences, while the console shows these.
    """

    def __init__(self, run_dir: Path, console: TrainConsole) -> None:
        self.counts: Counter[str] = Counter()
        self.being_told: dict[str, str] = {}
        self._path, self._console = run_dir / EVENTS_FILE, console

    def note(self, text: str) -> None:
        """Show it on the console alone."""
        self._console.note(text)

    def tell(self, event: str, text: str) -> None:
        """Note that something of the kind `event` happened; `text` is a sentence about it."""
        self.counts[event] += 1
        self.being_told[text] = event
        self.note(text)
        self.being_told.pop(text, None)
        line = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "event": event, "text": text}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
