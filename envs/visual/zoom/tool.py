"""Large images shown small: a zoom tool brings back what cannot be read, then one answer.

The image is `scale` times as large as it is shown. The tool takes a part of what was shown first, and shows
it at the large image's own resolution, enlarged or shrunken to the same size.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
from PIL import Image

from vlrl.coordinates import FRAMES, Box, Canvas, CoordinateFrame, frame_extent, quantise
from vlrl.envs.tools.declare import Tool, ToolError, tool
from vlrl.envs.tools.images import BoxArgument, ImageTool, zoomed
from vlrl.envs.visual.answers import TaskAnswer
from vlrl.envs.visual.episodes import EpisodeEnv
from vlrl.envs.visual.question import CLOSE, OPEN, last_answer
from vlrl.errors import ConfigError
from vlrl.parsing.tool_calls import ParsedCall, parse_calls, write_call
from vlrl.protocols import Observation, StepResult

View: TypeAlias = tuple[int, int, int, int] | None
"""The part that was shown last, in pixels of the large image; None for all of it."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A large image and what is asked of it.

    Attributes:
        image: [scale · image_size] squared.
        question: with the form of its answer.
        answer: the right one.
        target: (x0, y0, x1, y1) of what must be read, in pixels of the large image.
    """

    image: Image.Image
    question: str
    answer: TaskAnswer
    target: tuple[int, int, int, int]


class ZoomEnv(EpisodeEnv[Scene, View], ABC):
    """Look, zoom as often as is needed, answer: reward 1 for the right answer, else 0, less the penalties.

    A text that ends with an answer is the answer, whatever it calls; else all its calls are carried out.
    Wrong calls are answered with what is wrong. Each text is a step.
    """

    default_max_steps: ClassVar[int] = 8
    rules: str

    def __init__(
        self,
        level: int | Sequence[int] = 1,
        scale: int = 6,
        grid: int = 0,
        frame: CoordinateFrame = "original_pixels",
        offer_tools: bool = True,
        **options: Any,
    ) -> None:
        """Choose difficulty, images and the tool.

        Args:
            level: of difficulty, or [lowest, highest].
            scale: how many times the image is larger than it is shown.
            grid: 0 for a tool that takes any box; n for one that takes one of n × n cells by its row and
                column, which is easier to learn.
            frame: in which boxes are given: "original_pixels" are those of the image as it is shown, before
                the model's processor resizes it; "per_1000", "per_999" and "unit" are shares of it.
            offer_tools: False leaves the tool's schema out of the chat template, for short prompts and for
                templates without tools: how to call it is in the system prompt all the same.
            options: of every episode; see EpisodeEnv. max_steps is 8 by default.

        Raises:
            ConfigError: for an option out of range.
        """
        super().__init__(level, **options)
        self.check_count("scale", scale, 2)
        self.check_count("grid", grid, 0)
        if frame not in FRAMES or frame == "resized_pixels" or grid == 1 or grid > 16 or scale > 32:
            raise ConfigError(
                f"env {self.name}: options scale={scale}, grid={grid}, frame={frame!r}; scale is at most 32, "
                "grid 0 or from 2 to 16, frame one of original_pixels, per_1000, per_999, unit"
            )
        self.scale, self.grid = scale, grid
        side, large = self.image_size, self.image_size * scale
        self.canvas = Canvas((large, large), (side, side))
        # What the environment shows is the original to the model's processor.
        shown_frame: CoordinateFrame = "resized_pixels" if frame == "original_pixels" else frame
        self._zoom: _ZoomBox | _ZoomCell
        self._zoom = _ZoomCell(grid, self.canvas) if grid else _ZoomBox(shown_frame, self.canvas)
        self._tool: Tool = tool(self._zoom)
        self.tools = [self._tool.schema] if offer_tools else []
        self.system_prompt = (
            f"{self.rules} The picture is shown small; call the tool zoom to see a part of it enlarged, "
            f"such as\n{self._example()}\n"
            f"You may think first. In the end answer with {OPEN}your answer{CLOSE}."
        )

    def first(self, world: Scene) -> View:
        """All of the image."""
        return None

    def show(self) -> Observation:
        """All of the image, shown small, and the question."""
        small = self.world.image.reduce(self.scale)
        return Observation(self.world.question, [small], summary=self.world.question)

    def step(self, action: str) -> StepResult:
        """Zoom or answer; info has success, invalid, state, level and num_steps."""
        self.check_open()
        self._num_steps += 1
        said = last_answer(action)
        if said is not None:
            return self._answered(said)
        observation, invalid = self._called(action)
        left = (self.max_steps or self.default_max_steps) - self._num_steps
        if left == 1:
            observation = replace(observation, text=f"{observation.text} Answer now.".lstrip())
        return self._result(observation, 0.0, success=False, invalid=invalid, truncated=left <= 0)

    def oracle(self) -> str:
        """Zoom to what is asked for; the answer once it is seen."""
        if self._seen():
            return f"{OPEN}{self.world.answer.text}{CLOSE}"
        return write_call("zoom", self._zoom.arguments(self.world.target))

    def random_action(self, rng: np.random.Generator) -> str:
        """A zoom anywhere or a guess, as often as each other."""
        if rng.random() < 0.5:
            return f"{OPEN}{self.world.answer.guess(rng)}{CLOSE}"
        side = self.canvas.original_size[0]
        x, y = rng.integers(0, side // 2, 2).tolist()
        return write_call("zoom", self._zoom.arguments((x, y, x + side // 4, y + side // 4)))

    def _seen(self) -> bool:
        """Whether the part shown last has the target in it, at twice the size shown first or more."""
        if self.state is None:
            return False
        x0, y0, x1, y1 = self.state
        left, top, right, bottom = self.world.target
        large = 2 * max(x1 - x0, y1 - y0) <= self.canvas.original_size[0]
        return large and x0 <= left and y0 <= top and x1 >= right and y1 >= bottom

    def _answered(self, said: str) -> StepResult:
        score = self.world.answer.grade(said)
        if score is None:
            text = f"That is not of the form asked for, such as {self.world.answer.text}."
        else:
            text = f"The answer is {self.world.answer.text}."
        success, invalid = score == 1.0, score is None
        return self._result(Observation(text), score or 0.0, success=success, invalid=invalid, ended=True)

    def _called(self, action: str) -> tuple[Observation, bool]:
        """Carry out the calls in a text: (what they show, whether one was wrong or there was none)."""
        calls = parse_calls(action)
        texts: list[str] = []
        images: list[Image.Image] = []
        for call in calls:
            try:
                images.append(self._zoomed(call) if isinstance(call, ParsedCall) else _refuse(call.message))
            except ToolError as error:
                texts.append(f"Error: {error}.")
        question = self.world.question
        if not calls:
            text = f"Zoom, such as\n{self._example()}\nor answer with {OPEN}your answer{CLOSE}."
            return Observation(text, summary=question), True
        return Observation(" ".join(texts), images, role="tool", summary=question), bool(texts)

    def _zoomed(self, call: ParsedCall) -> Image.Image:
        if call.name != "zoom":
            raise ToolError("there is no such tool; the only one is zoom")
        part = self._zoom(**self._tool.validated(call.arguments))
        self._state = part
        return zoomed(self.world.image, part, self.image_size)

    def _result(
        self,
        observation: Observation,
        reward: float,
        *,
        success: bool,
        invalid: bool,
        ended: bool = False,
        truncated: bool = False,
    ) -> StepResult:
        self._ended = ended or truncated
        info = {
            "success": success,
            "invalid": invalid,
            "state": "answered" if ended else str(self._state),
            "level": self._place[0],
            "num_steps": self._num_steps,
        }
        penalty = self.invalid_penalty if invalid else self.step_penalty
        return StepResult(observation, reward - penalty, ended, truncated, info)

    def _example(self) -> str:
        side = self.canvas.original_size[0]
        return write_call("zoom", self._zoom.arguments((side // 4, side // 4, side // 2, side // 2)))


class _ZoomBox(ImageTool):
    """The tool that takes a box; what it gives is the part in pixels of the large image."""

    name = "zoom"

    def __init__(self, frame: CoordinateFrame, canvas: Canvas) -> None:
        """See ZoomEnv; `frame` is of the image as shown."""
        super().__init__(frame)
        self._canvas = canvas

    def __call__(self, box: BoxArgument) -> tuple[int, int, int, int]:
        """Enlarge a part of the image to see its details.

        Args:
            box: left, top, right and bottom edge of the part, in the image as it was shown first.
        """
        return self._box(box, self._canvas)

    def arguments(self, part: tuple[int, int, int, int]) -> dict[str, Any]:
        """The call that shows a part, with some room around it."""
        side = self._canvas.original_size[0]
        room = side // 16
        x0, y0, x1, y1 = part
        around = Box(max(x0 - room, 0), max(y0 - room, 0), min(x1 + room, side), min(y1 + room, side))
        wide, high = frame_extent(self.frame, self._canvas)
        said = quantise(around.map(lambda x: x * wide / side, lambda y: y * high / side), self.frame)
        numbers = (said.x0, said.y0, said.x1, said.y1)
        return {"box": [int(number) if number == int(number) else number for number in numbers]}


class _ZoomCell:
    """The tool that takes a cell of a grid."""

    name = "zoom"

    def __init__(self, grid: int, canvas: Canvas) -> None:
        """See ZoomEnv."""
        self._grid, self._side = grid, canvas.original_size[0]
        self.note = f"The picture is divided into {grid} rows and {grid} columns, counted from 1."

    def __call__(self, row: int, column: int) -> tuple[int, int, int, int]:
        """Enlarge a cell of the image to see its details.

        Args:
            row: of the cell, from the top.
            column: of the cell, from the left.
        """
        for number in (row, column):
            if not 1 <= number <= self._grid:
                raise ToolError(f"rows and columns are from 1 to {self._grid}")
        edges = [index * self._side // self._grid for index in range(self._grid + 1)]
        return edges[column - 1], edges[row - 1], edges[column], edges[row]

    def arguments(self, part: tuple[int, int, int, int]) -> dict[str, Any]:
        """The call that shows the cell of a part's middle."""
        x, y = (part[0] + part[2]) // 2, (part[1] + part[3]) // 2
        return {"row": y * self._grid // self._side + 1, "column": x * self._grid // self._side + 1}


def _refuse(message: str) -> Image.Image:
    raise ToolError(message)
