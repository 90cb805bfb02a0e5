"""AgentNet, the demonstrations of OpenCUA: tasks on Ubuntu, Windows and macOS desktops, in pyautogui's words.

A line of agentnet_*.jsonl is an episode: instruction, natural_language_task and traj, steps of an image and a
value with code, thought, action and last_step_correct. Coordinates are shares of the screen. Source, facts
only: Wang et al. 2025, arXiv 2508.09123; xlangai/AgentNet; xlang-ai/OpenCUA. The code is read by the codec
osworld_pyautogui and never run; a step in which it sees more than one call is left out, but for a drag, which
is a move and a drag.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from vlrl.config.data import MediaConfig
from vlrl.coordinates import Canvas
from vlrl.data.benchmarks.files import published_files
from vlrl.data.benchmarks.rows import scorer
from vlrl.data.readers.record import Record
from vlrl.data.readers.text_files import JsonlReader
from vlrl.envs.gui.actions import Action, Drag, Finish, Move, Wait
from vlrl.envs.gui.codecs.codec import ActionError, View
from vlrl.envs.gui.codecs.open import open_codec
from vlrl.envs.gui.datasets.steps import Demonstration, History, ShownStep, Told
from vlrl.envs.gui.datasets.style import Style
from vlrl.errors import ConfigError, DataError
from vlrl.processors.media.image import image_size
from vlrl.processors.media.sources import under_root

_TERMINATE = re.compile(r"computer\.terminate\(\s*status\s*=\s*['\"](success|failure)['\"].*\)\s*", re.DOTALL)
_KEY_LIST = re.compile(r"hotkey\(\s*(?:keys\s*=\s*)?\[([^\]]*)\]")
_ANY_SIZE = (1000, 1000)


class AgentNet:
    """Rows of the steps whose code is one action; those that a reviewer found wrong are left out."""

    def __init__(
        self,
        path: str,
        images_folder: str | None = None,
        codec: str = "qwen2_5_computer_use",
        history: History = "text",
        images: int = 1,
        factor: int | None = None,
        only_correct: bool = True,
    ) -> None:
        """Read which steps there are; images are opened row by row.

        Args:
            path: the folder of the JSON lines, or one file.
            images_folder: the unpacked images; None is the folder of the file.
            codec: grammar of instructions, history and target.
            history: see `vlrl.envs.gui.datasets.steps`.
            images: screenshots that are shown.
            factor: see `vlrl.envs.gui.datasets.style.Style`.
            only_correct: leave out steps whose last_step_correct is false, as targets.

        Raises:
            ConfigError: for an unknown codec.
            DatasetMissing: if there are no such files.
            DataError: naming the line that is not an episode.
        """
        self._told = Told(Style.of("agentnet", codec, factor), history, images)
        files = published_files("agentnet", path, ("agentnet_*.jsonl",))
        self._readers = [JsonlReader(str(file), images_folder) for file in files]
        self.rewards = (scorer("step_match"),)
        self._places = [
            (which, line, number)
            for which, reader in enumerate(self._readers)
            for line in range(len(reader))
            for number, step in enumerate(_steps(reader[line]))
            if _can_be_read(step, only_correct)
        ]
        if not self._places:
            raise ConfigError(f"dataset agentnet: {path} holds no step whose code is one action")

    def __len__(self) -> int:
        """Number of steps."""
        return len(self._places)

    def __getitem__(self, index: int) -> Record:
        """Step `index`.

        Raises:
            DataError: naming the episode, if an image is missing or the codec cannot say the action.
        """
        which, line, number = self._places[index]
        record = self._readers[which][line]
        shown = _episode(record, number)
        for row in self._told.rows(shown):
            if row.fields["metadata"]["step"] == number:
                return row
        raise DataError(f"{record.place}, step {number}: the codec cannot say it; choose another codec")


def _episode(record: Record, last: int) -> Demonstration:
    """The episode up to a step."""
    fields, root = record.fields, record.root
    assert root is not None
    steps = []
    for number, said in enumerate(_steps(record)[: last + 1]):
        name = f"{record.place}, step {number}"
        path = under_root(root, str(said.get("image")), name)
        if not path.is_file():
            raise DataError(f"{name}: there is no image {path}; unpack the archives, or set images_folder")
        with path.open("rb") as file:
            size = image_size(file, name, MediaConfig().max_source_pixels)
        steps.append(ShownStep(str(path), size, _action(said, size)))
    goal = fields.get("natural_language_task") or fields.get("instruction") or ""
    return Demonstration(record.place, str(goal), "desktop", steps, root, {"task_id": fields.get("task_id")})


def _steps(record: Record) -> list[Mapping[str, Any]]:
    steps = record.fields.get("traj")
    if not isinstance(steps, list) or not all(
        isinstance(step, Mapping) and isinstance(step.get("value"), Mapping) for step in steps
    ):
        raise DataError(f"{record.place}: 'traj' must be a list of steps with a 'value'")
    return steps


def _can_be_read(step: Mapping[str, Any], only_correct: bool) -> bool:
    if only_correct and step["value"].get("last_step_correct") is False:
        return False
    return _action(step, _ANY_SIZE) is not None


def _action(step: Mapping[str, Any], size: tuple[int, int]) -> Action | None:
    """The action of a step's code; None for one that is none, or more than one."""
    code = str(step["value"].get("code", "")).strip()
    if ended := _TERMINATE.fullmatch(code):
        return Finish(ended[1] == "success")
    if code.startswith("computer.wait("):
        return Wait()
    code = _KEY_LIST.sub(r"hotkey(\1", code).replace("computer.triple_click(", "pyautogui.tripleClick(")
    first, _, rest = code.partition("\n")
    if rest and "dragTo" in rest and isinstance(move := _parsed(first, size), Move):
        drag = _parsed(rest, size)
        return Drag((move.point, drag.path[-1]), drag.button) if isinstance(drag, Drag) else None
    return _parsed(code, size)


def _parsed(code: str, size: tuple[int, int]) -> Action | None:
    try:
        return open_codec("osworld_pyautogui@unit").parse(code, View(Canvas(size, size), (0, 0)))
    except ActionError:
        return None
