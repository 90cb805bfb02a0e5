"""Environments that do whatever their task or options say, on the worst side."""

from __future__ import annotations

import asyncio
import ctypes
import itertools
import os
import re
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vlrl.errors import ConfigError
from vlrl.protocols import Observation, StepResult, Video

FILE = Path(__file__)
FRAME = Observation("frame")
NUMBERS = itertools.count()


def misbehave(what: str) -> Any:
    """Do it; what is returned is what `step` or `reset` is to return."""
    match what:
        case "raise":
            raise ValueError("the env is broken")
        case "quit":
            raise SystemExit(4)
        case "sleep":
            time.sleep(600)
        case "hold the GIL":
            re.match("(a+)+$", "a" * 60 + "b")
        case "exit":
            os._exit(3)
        case "segfault":
            ctypes.string_at(0)
        case "eat":
            return bytearray(8 << 30)
        case "leave a child and exit":
            os.system("sleep 600 &")
            os._exit(3)
        case "fork a daemon and exit":
            if os.fork():
                os._exit(3)
            os.setsid()  # out of reach of who kills the process group
            time.sleep(5)
            os._exit(0)
        case "nothing":
            return None
        case "nothing for nobody":
            return {}
        case "nan":
            return StepResult(FRAME, float("nan"), False, False)
        case "text reward":
            return StepResult(FRAME, "1.0", False, False)  # type: ignore[arg-type]
        case "no flag":
            return StepResult(FRAME, 1.0, None, False)  # type: ignore[arg-type]
        case "no mapping":
            return StepResult(FRAME, 1.0, False, False, None)  # type: ignore[arg-type]
        case "float image":
            return StepResult(Observation(images=[np.zeros((2, 2, 3))]), 1.0, False, False)
        case "path image":
            return StepResult(Observation(images=["a.png"]), 1.0, False, False)
        case "wrong task":
            raise ConfigError("task key 'levle' is unknown; did you mean 'level'?")


class Faulty:
    """Counts; in the step that its task says it does what its task says."""

    system_prompt = "Count."
    tools = ({"type": "function", "function": {"name": "zoom"}},)

    def __init__(self, at_start: str = "", level: int = 1, closed: str = "") -> None:
        misbehave(at_start)
        self.level, self.closed = level, closed
        self.thread, self.number = threading.get_ident(), next(NUMBERS)

    def reset(self, task: Mapping[str, Any], seed: int) -> Any:
        self.task, self.seed, self.num_steps = task, seed, 0
        if "spoilt" in task:
            assert not task["spoilt"]
            task["spoilt"].append(1)
        if (returned := misbehave(task.get("reset", ""))) is not None or task.get("reset") == "nothing":
            return returned
        return Observation(f"seed {seed}", summary=f"process {os.getpid()}, environment {self.number}")

    def step(self, action: str) -> Any:
        what = self.task.get("steps", {}).get(str(self.num_steps), "")
        self.num_steps += 1
        print("an env that prints")
        self.tell()
        if what and ((returned := misbehave(what)) is not None or what == "nothing"):
            return returned
        same_thread = self.thread == threading.get_ident()
        info = {"success": True, "state": str(self.num_steps), "same_thread": same_thread, "odd": object()}
        return StepResult(Observation(f"{action}!"), self.num_steps + self.seed, False, False, info)

    def tell(self) -> None:
        """Say that a step has begun, and in which process."""
        if folder := self.task.get("folder"):
            (Path(folder) / f"{self.seed}-{os.getpid()}").touch()

    def close(self) -> None:
        if self.closed:
            with open(self.closed, "a") as file:
                file.write(f"{os.getpid()}\n")


class AsyncFaulty(Faulty):
    """The same, async."""

    async def reset(self, task: Mapping[str, Any], seed: int) -> Any:
        self.loop = asyncio.get_running_loop()
        return super().reset(task, seed)

    async def step(self, action: str) -> Any:
        assert self.loop is asyncio.get_running_loop()
        if self.task.get("steps", {}).get(str(self.num_steps)) == "sleep":
            self.tell()
            await asyncio.sleep(600)
        await asyncio.sleep(0)
        return super().step(action)

    async def close(self) -> None:
        super().close()


class EndsEpisodes(Faulty):
    """Notes in a file each episode that it is told is over; fails there if its task says so."""

    def reset(self, task: Mapping[str, Any], seed: int) -> Any:
        self.notes = Path(task["notes"])
        return super().reset(task, seed)

    def end_episode(self) -> None:
        with self.notes.open("a") as file:
            file.write(f"{self.seed}\n")
        misbehave(self.task.get("end", ""))


class Images:
    """Draws every image into the same memory."""

    def __init__(self, kind: str = "array", size: tuple[int, int] = (8, 8)) -> None:
        self.kind = kind
        self.canvas = np.zeros((*size, 3), np.uint8)
        self.image = Image.fromarray(self.canvas)

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        return self._show(seed)

    def step(self, action: str) -> StepResult:
        return StepResult(self._show(int(action)), 0.0, False, False)

    def _show(self, value: int) -> Observation:
        self.canvas[:] = value
        self.image.paste((value, value, value), (0, 0, *self.image.size))
        match self.kind:
            case "array":
                return Observation(images=[self.canvas])
            case "pil":
                return Observation(images=[self.image])
            case "palette":
                return Observation(images=[self.image.quantize()])
            case _:
                return Observation(videos=[Video([self.canvas, self.image], fps=2)])

    def close(self) -> None:
        pass
