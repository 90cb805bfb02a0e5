"""Questions about images that may be looked at with tools before they are answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal, TypeAlias

import numpy as np
from PIL import Image, ImageOps

from vlrl.coordinates import Canvas
from vlrl.envs.adapters.json_values import random_value
from vlrl.envs.tools.declare import Given, Tool, ToolResult
from vlrl.envs.tools.open import open_tools
from vlrl.errors import ConfigError
from vlrl.parsing.tool_calls import FORM, CallError, ParsedCall, parse_calls, tools_prompt, write_call
from vlrl.protocols import Observation, StepResult
from vlrl.seeds import derive_seed

State: TypeAlias = tuple[int, int, int, tuple[Image.Image, ...], tuple[Canvas, ...], bool]


class ToolEnv:
    """A question; tool calls, in order; and an answer, which is any text without a call.

    A task is {"text": the question, "images": its images}: PIL images, [h, w, 3] uint8 arrays or paths. The
    environment gives no reward of its own: the answer is scored by the sample's rewards. A wrong call
    is answered with its error. Keys of info: num_tool_calls, num_tool_errors (so far), invalid (a text in
    which no call is well-formed, of a known tool, and still allowed).

    Attributes:
        tools: JSON schemas for the chat template.
        system_prompt: what says the same in its place, or "".
    """

    def __init__(
        self,
        tools: Sequence[str],
        options: Mapping[str, Mapping[str, Any]] | None = None,
        max_calls: int = 8,
        max_side: int | None = None,
        multiple_of: int = 1,
        told_by: Literal["template", "system_prompt"] = "template",
    ) -> None:
        """Choose the tools.

        Args:
            tools: registered names, or ./file.py:function.
            options: of tools that have some, by their name in `tools`.
            max_calls: calls in an episode, those in error included; after them only an answer is accepted.
            max_side: most pixels along the longer side of an image as it is shown; larger ones are shrunken,
                and tools work on what they were before. None shows them as they are.
            multiple_of: both sides of an image as it is shown are multiples of this. A model that names
                places in pixels of what it sees needs its processor's grain, such as 28, so that nothing is
                resized again.
            told_by: what describes the tools to the model: its chat template, or, for templates that know of
                none (Qwen2.5-VL's is one), a system prompt.

        Raises:
            ConfigError: for an unknown tool or a wrong option.
        """
        if isinstance(tools, str) or not tools:
            raise ConfigError(f"env 'tools': tools={tools!r} must be a list of one or more names")
        for key, value in {"max_calls": max_calls, "multiple_of": multiple_of, "max_side": max_side}.items():
            if value is not None and value < 1:
                raise ConfigError(f"env 'tools': {key}={value} must be at least 1")
        if max_side is not None and max_side < multiple_of:
            raise ConfigError(f"env 'tools': max_side={max_side} is less than multiple_of={multiple_of}")
        if told_by not in ("template", "system_prompt"):
            raise ConfigError(f"env 'tools': told_by={told_by!r} is not one of template, system_prompt")
        self._tools: dict[str, Tool] = {made.name: made for made in open_tools(tools, options or {})}
        schemas = [made.schema for made in self._tools.values()]
        self.tools: list[Mapping[str, Any]] = schemas if told_by == "template" else []
        self.system_prompt = tools_prompt(schemas) if told_by == "system_prompt" else ""
        self._max_calls, self._max_side, self._multiple_of = max_calls, max_side, multiple_of
        self._seed = self._num_calls = self._num_errors = 0
        self._images: tuple[Image.Image, ...] = ()
        self._canvases: tuple[Canvas, ...] = ()
        self._ended = True

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        """Show the question.

        Raises:
            ConfigError: for a key that no task has, and for what is not an image.
        """
        for key in task:
            if key not in ("text", "images"):
                raise ConfigError(f"env 'tools': a task has the keys text and images, not {key!r}")
        self._seed, self._num_calls, self._num_errors, self._ended = seed, 0, 0, False
        self._images, self._canvases = (), ()
        images = task.get("images", ())
        if not isinstance(images, list | tuple):
            raise ConfigError(f"env 'tools': task['images'] must be a list, not {type(images).__name__}")
        shown = [self._shown(_image(image, index)) for index, image in enumerate(images)]
        return Observation(str(task.get("text", "")), shown)

    def step(self, action: str) -> StepResult:
        """Carry out the calls in a text, or take it as the answer if there are none.

        Raises:
            RuntimeError: if the episode has ended.
        """
        if self._ended:
            raise RuntimeError("the episode has ended; reset starts the next one")
        calls = parse_calls(action)
        if not calls:
            self._ended = True
            return StepResult(Observation("The answer was given."), 0.0, True, False, self._info(False))
        texts: list[str] = []
        images: list[Image.Image] = []
        taken = calls[: self._max_calls - self._num_calls]
        invalid = not any(isinstance(call, ParsedCall) and call.name in self._tools for call in taken)
        for call in taken:
            result = self._result(call)
            self._num_calls += 1
            self._num_errors += result.failed
            parts = [self._said(part, images) for part in result.parts]
            name = (
                f"{call.name}: "
                if isinstance(call, ParsedCall) and len(calls) > 1 and not result.failed
                else ""
            )
            texts.append(name + "\n".join(parts))
        if len(taken) < len(calls):
            texts.append(f"No more than {self._max_calls} tool calls are allowed. Give your answer now.")
        observation = Observation("\n\n".join(texts), images, role="tool")
        return StepResult(observation, 0.0, False, False, self._info(invalid))

    def random_action(self, rng: np.random.Generator) -> str:
        """A call with arguments of the right types, or, one time in two, an answer that says nothing."""
        if rng.integers(2):
            return "<answer></answer>"
        tools = list(self._tools.values())
        drawn = tools[rng.integers(len(tools))]
        return write_call(drawn.name, random_value(drawn.schema["function"]["parameters"], rng))

    def snapshot(self) -> State:
        """The episode as a value; images are shared, for nobody changes them."""
        return self._seed, self._num_calls, self._num_errors, self._images, self._canvases, self._ended

    def restore(self, state: State) -> None:
        """Go back to a snapshot."""
        self._seed, self._num_calls, self._num_errors, self._images, self._canvases, self._ended = state

    def close(self) -> None:
        """Forget the images."""
        self._images, self._canvases, self._ended = (), (), True

    def _result(self, call: ParsedCall | CallError) -> ToolResult:
        if isinstance(call, CallError):
            return ToolResult((f"Error: {call.message}. A call looks like this:\n{FORM}",), failed=True)
        if call.name not in self._tools:
            known = ", ".join(self._tools)
            return ToolResult(
                (f"Error: there is no tool {call.name!r:.60}; the tools are: {known}",), failed=True
            )
        # Of this call alone: what one tool draws does not change what the next one draws.
        rng = np.random.default_rng(derive_seed("tools", self._seed, self._num_calls))
        return self._tools[call.name].run(call.arguments, Given(self._images, self._canvases, rng))

    def _said(self, part: str | Image.Image, images: list[Image.Image]) -> str:
        """A part of a result as text; an image is added to `images` and named."""
        if isinstance(part, str):
            return part
        images.append(self._shown(part))
        return f"[image {len(self._images)}: {images[-1].width}×{images[-1].height}]"

    def _shown(self, image: Image.Image) -> Image.Image:
        """The image as the model is shown it; it is remembered as it was."""
        grain, most = self._multiple_of, self._max_side or max(image.size) + self._multiple_of
        scale = min(1.0, most / max(image.size))
        width, height = (
            min(max(1, round(side * scale / grain)), most // grain) * grain for side in image.size
        )
        self._images += (image,)
        self._canvases += (Canvas((image.height, image.width), (height, width)),)
        if image.size == (width, height):
            return image
        return image.resize((width, height), Image.Resampling.BICUBIC)

    def _info(self, invalid: bool) -> dict[str, Any]:
        return {
            "num_tool_calls": self._num_calls,
            "num_tool_errors": self._num_errors,
            "invalid": invalid,
        }


def _image(source: Any, index: int) -> Image.Image:
    where = f"env 'tools': task['images'][{index}]"
    if isinstance(source, str | PathLike):
        try:
            with Image.open(source) as image:
                return ImageOps.exif_transpose(image).convert("RGB")
        except (OSError, Image.DecompressionBombError) as error:
            raise ConfigError(f"{where}: {source} cannot be read as an image: {error}") from error
    if (
        isinstance(source, np.ndarray)
        and source.dtype == np.uint8
        and source.ndim == 3
        and source.shape[2] == 3
    ):
        return Image.fromarray(source)
    if isinstance(source, Image.Image):
        return source.convert("RGB")
    raise ConfigError(
        f"{where} is {type(source).__name__}; give a PIL image, a uint8 array [h, w, 3] or a path"
    )
