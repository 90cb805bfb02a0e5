"""An evaluation on disk: each row's answers as soon as they are there, so that one that was killed goes on.

FOLDER/samples.jsonl     a line an answer (`vlrl.tracking.rollouts.records`), what it earned under `heldout`
FOLDER/evaluation.json   whose answers they are: config, and fingerprints of model, rows and reward files
FOLDER/media/            images
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vlrl.config import Config
from vlrl.data import StreamedRows
from vlrl.data.curriculum.fingerprints import data_fingerprint, model_fingerprint
from vlrl.data.run_data import Sources
from vlrl.errors import ConfigError
from vlrl.evaluation.answers import HOWS, HeldoutAnswer, HeldoutRow, How
from vlrl.protocols import Processor
from vlrl.run.manifest import sync_entry
from vlrl.run.resume import differences
from vlrl.tracking.rollouts.records import SURROGATES, images_of, rollout_records, write_rollouts
from vlrl.types import Group

SAMPLES_FILE = "samples.jsonl"
SETTINGS_FILE = "evaluation.json"

ASKED = (
    *("config.processor", "config.data.eval", "config.data.max_prompt_tokens", "config.data.overlong"),
    *("config.data.on_broken", "config.rewards", "config.rollout.temperature", "config.rollout.max_tokens"),
    "config.rollout.structured_outputs",
    *("config.env", "config.episodes", "config.generator.max_model_len", "config.eval.num_answers"),
    *("config.eval.endpoint.base_url", "config.eval.endpoint.model", "config.eval.endpoint.extra_body"),
    *("config.eval.endpoint.image_format", "config.eval.endpoint.max_image_pixels"),
    *("config.model.dtype", "config.run.seed", "config.scoring.clip", "fingerprints"),
)
"""What answers and their scores depend on; eval.group_by and data.pass_threshold, say, may change."""

Key = tuple[How, str, int]
"""How a row was asked, its set, its number there."""


class KeptAnswers:
    """The answers of a folder: those that are there, and those that are added."""

    def __init__(self, folder: Path, config: Config, sources: Sources, processor: Processor) -> None:
        """Read what is there.

        Args:
            folder: made if it is not there.
            config: of the evaluation.
            sources: its rows.
            processor: spells the tokens.

        Raises:
            ConfigError: if the folder's answers are of another model, other rows or another config.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.path, self._processor = folder / SAMPLES_FILE, processor
        self._lock = threading.Lock()
        _require_same(folder, settings_of(config, sources))
        self._found = self._read()

    @property
    def num_rows(self) -> int:
        """Rows that are done, greedy and sampled counted apart."""
        return len(self._found)

    def has(self, how: How, row: HeldoutRow) -> bool:
        """Whether a row need not be asked any more."""
        return (how, row.set, row.row) in self._found

    def answers(self, how: How, row: HeldoutRow) -> list[HeldoutAnswer]:
        """A row's answers; the parts it belongs to are those of now."""
        return [replace(answer, parts=row.parts) for answer in self._found[how, row.set, row.row]]

    def add(
        self, how: How, row: HeldoutRow, answers: Sequence[HeldoutAnswer], groups: Sequence[Group]
    ) -> None:
        """Keep all answers of a row: they are on the disk when this returns."""
        records = rollout_records(groups, self._processor, phase=how, step=0)
        lines = [
            record | {"heldout": answer.line() | {"num_answers": len(answers)}}
            for record, answer in zip(records, answers, strict=True)
        ]
        with self._lock:
            write_rollouts(self.path, lines, images_of(groups), append=True)
            sync_entry(self.path)
            self._found[how, row.set, row.row] = list(answers)

    def finish(self) -> None:
        """Put the lines in the order of sets and rows, greedy ones first."""

        def place(line: str) -> tuple[int, str, int]:
            said = json.loads(line)["heldout"]
            return HOWS.index(said["how"]), said["set"], said["row"]

        self._write(sorted(self._lines(), key=place))

    def _read(self) -> dict[Key, list[HeldoutAnswer]]:
        """What is whole and did not fail; the rest is removed, and asked again."""
        lines: dict[Key, list[str]] = defaultdict(list)
        found: dict[Key, list[HeldoutAnswer]] = defaultdict(list)
        wanted = dict[Key, int]()
        for line in self._lines():
            try:
                said = json.loads(line)["heldout"]
            except ValueError:  # cut short by a kill
                continue
            key = (said["how"], said["set"], said["row"])
            wanted[key] = said.pop("num_answers")
            lines[key].append(line)
            found[key].append(HeldoutAnswer.of_line(said))
        whole = {
            key: answers
            for key, answers in found.items()
            if len(answers) == wanted[key] and all(answer.value is not None for answer in answers)
        }
        if self.path.exists():
            self._write([line for key in whole for line in lines[key]])
        return whole

    def _lines(self) -> list[str]:
        if not self.path.exists():
            return []
        return self.path.read_text(encoding="utf-8").split("\n")[:-1]

    def _write(self, lines: Sequence[str]) -> None:
        aside = self.path.with_name(self.path.name + ".part")
        aside.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", errors=SURROGATES)
        sync_entry(aside)
        os.replace(aside, self.path)


def settings_of(config: Config, sources: Sources) -> dict[str, Any]:
    """Whose answers an evaluation gives: the config, and fingerprints of what it names."""
    rewards = [*config.rewards, *(reward for source in config.data.eval for reward in source.rewards)]
    files = {name for reward in rewards if (name := reward.name.partition(":")[0]).endswith(".py")}
    return {
        "config": config.model_dump(mode="json"),
        "fingerprints": {
            "model": model_fingerprint(config.model.path),
            "rows": {
                source.name.removeprefix("heldout/"): data_fingerprint(source.rows)
                for source in sources.heldout
                if not isinstance(source.rows, StreamedRows)
            },
            "rewards": {name: hashlib.sha256(Path(name).read_bytes()).hexdigest()[:16] for name in files},
        },
    }


def _require_same(folder: Path, settings: Mapping[str, Any]) -> None:
    """Raise ConfigError if a folder's answers are not of these settings; note them in a new one."""
    path = folder / SETTINGS_FILE
    if not path.exists():
        if (folder / SAMPLES_FILE).exists():
            raise ConfigError(
                f"--out {folder}: it has {SAMPLES_FILE} and no {SETTINGS_FILE}, so whose answers they are is "
                "not known; give another folder, or remove it"
            )
        aside = path.with_name(path.name + ".part")
        aside.write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
        os.replace(aside, path)
        return
    before = json.loads(path.read_text(encoding="utf-8"))
    changes = [each for each in differences(before, settings) if each.key.startswith(ASKED)]
    if changes:
        told = "; ".join(str(each).removeprefix("config.") for each in changes)
        raise ConfigError(
            f"--out {folder} holds answers of another evaluation: {told}. Set that back to go on with it, "
            "give another folder, or remove it"
        )
