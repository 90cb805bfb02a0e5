"""A good environment, and others that each break the contract in one way: plug-ins, loaded by path."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import threading
import time
from typing import Any, ClassVar

import numpy as np

from vlrl.envs.action_text import last_action
from vlrl.errors import ConfigError, NoOracle
from vlrl.protocols import Observation, StepResult
from vlrl.seeds import derive_seed

SIDE = 8


class Good:
    """Walk a dot to the right edge; 6 moves at most."""

    system_prompt = "Walk to the right edge: <action>left</action> or <action>right</action>."
    counter = itertools.count()

    def __init__(self, color: int = 200) -> None:
        self.color = color

    def reset(self, task: Any, seed: int) -> Any:
        if task:
            raise ConfigError(f"env good: unknown task key {next(iter(task))!r}")
        rng = np.random.default_rng(derive_seed("good", seed))
        self.row, self.column = int(rng.integers(0, SIDE)), int(rng.integers(3, 6))
        self.turn = 0
        return self.look("Go.")

    def step(self, action: str) -> Any:
        move = last_action(action)
        self.turn += 1
        if move not in ("left", "right"):
            return StepResult(self.look("Say left or right."), 0.0, False, self.turn == 6, {"invalid": True})
        self.column = max(0, min(SIDE - 1, self.column + (1 if move == "right" else -1)))
        won = self.column == SIDE - 1
        info = {"success": won, "invalid": False, "state": f"{self.row},{self.column}"}
        return StepResult(self.look("Go on."), float(won), won, self.turn == 6, info)

    def look(self, text: str) -> Observation:
        board = np.zeros((SIDE, SIDE, 3), np.uint8)
        board[self.row, self.column] = self.color
        return Observation(text, images=[board])

    def oracle(self) -> str:
        return "<action>right</action>"

    def random_action(self, rng: np.random.Generator) -> str:
        return f"<action>{rng.choice(['left', 'right'])}</action>"

    def snapshot(self) -> Any:
        return [self.row, self.column, self.turn]

    def restore(self, state: Any) -> None:
        self.row, self.column, self.turn = state

    def close(self) -> None:
        """Nothing is held."""


class RaisesWhenMade(Good):
    def __init__(self) -> None:
        raise ValueError("no display")


class ReturnsTwo(Good):
    def reset(self, task: Any, seed: int) -> Any:
        return super().reset(task, seed), {}


class FloatImages(Good):
    def look(self, text: str) -> Observation:
        return Observation(text, images=[np.zeros((4, 4, 3))])


class ShowsNothing(Good):
    def look(self, text: str) -> Observation:
        return Observation()


class TextOnly(Good):
    def look(self, text: str) -> Observation:
        return Observation(f"{text} You are at {self.row}, {self.column}.")


class ForgetsItsSeed(Good):
    def reset(self, task: Any, seed: int) -> Any:
        return super().reset(task, next(self.counter))


class DrawsFromNowhere(Good):
    def step(self, action: str) -> Any:
        self.column = int(np.random.randint(0, SIDE - 2))
        return super().step(action)


class NamesStatesAnew(Good):
    def step(self, action: str) -> Any:
        result = super().step(action)
        result.info["state"] = str(next(self.counter))
        return result


class HangsOnHashes(Good):
    def reset(self, task: Any, seed: int) -> Any:
        super().reset(task, seed)
        self.row = hash("row") % SIDE
        return self.look("Go.")


class OneBeginning(Good):
    def reset(self, task: Any, seed: int) -> Any:
        return super().reset(task, 0)


class KeepsItsPlace(Good):
    def reset(self, task: Any, seed: int) -> Any:
        before = getattr(self, "column", None)
        super().reset(task, seed)
        if before is not None and before != SIDE - 1 and self.turn == 0 and getattr(self, "dirty", False):
            self.column = before
        self.dirty = False
        return self.look("Go.")

    def step(self, action: str) -> Any:
        result = super().step(action)
        self.dirty = not (result.terminated or result.truncated)
        return result


class RaisesOnNonsense(Good):
    def step(self, action: str) -> Any:
        ["left", "right"].index(str(last_action(action)))
        return super().step(action)


class PaysForNonsense(Good):
    def step(self, action: str) -> Any:
        result = super().step(action)
        paid = 0.1 if result.info.get("invalid") else result.reward
        return StepResult(result.observation, paid, result.terminated, result.truncated, result.info)


class KeepsSilent(Good):
    def step(self, action: str) -> Any:
        result = super().step(action)
        result.info.pop("invalid")
        return result


class NoNumber(Good):
    def step(self, action: str) -> Any:
        result = super().step(action)
        return StepResult(result.observation, float("nan"), False, False)


class TellsTheTruthOddly(Good):
    def step(self, action: str) -> Any:
        result = super().step(action)
        return StepResult(result.observation, 0.0, "yes", False)  # type: ignore[arg-type]


class PaysTooMuch(Good):
    reward_range = (0.0, 0.5)


class BlindOracle(Good):
    def oracle(self) -> str:
        return "<action>left</action>"


class KnowsOddRows(Good):
    """Its oracle does not know all tasks, which is not a fault."""

    def seen(self, canvases: Any) -> None:
        pass

    def oracle(self) -> str:
        if self.row % 2:
            return super().oracle()
        raise NoOracle("env knows_odd_rows: even rows are beyond its oracle")


class KnowsNone(KnowsOddRows):
    def oracle(self) -> str:
        raise NoOracle("env knows_none: it knows nothing")


class ForgetsHowItIsShown(Good):
    """Its oracle speaks of pixels that the model does not see."""

    misses = False

    def seen(self, canvases: Any) -> None:
        self.misses = canvases[0].size != canvases[0].original_size

    def oracle(self) -> str:
        return "<action>left</action>" if self.misses else super().oracle()


class StammeringAgent(Good):
    def random_action(self, rng: np.random.Generator) -> str:
        return "right"


class FreeLunch(Good):
    def random_action(self, rng: np.random.Generator) -> str:
        return "<action>right</action>"


class NeverEnds(Good):
    def step(self, action: str) -> Any:
        result = super().step(action)
        return StepResult(result.observation, 0.0, False, False, result.info)


class SharesItsState(Good):
    def reset(self, task: Any, seed: int) -> Any:
        super().reset(task, seed)
        self.place = {"column": self.column}
        return self.look("Go.")

    def step(self, action: str) -> Any:
        self.column = self.place["column"]
        result = super().step(action)
        self.place["column"] = self.column
        return result

    def snapshot(self) -> Any:
        return self.place, self.turn

    def restore(self, state: Any) -> None:
        self.place, self.turn = state


class SharesWhatItRestores(SharesItsState):
    def snapshot(self) -> Any:
        return dict(self.place), self.turn


class ForgetsItsTurn(Good):
    def snapshot(self) -> Any:
        return self.row

    def restore(self, state: Any) -> None:
        self.row = state


class KeepsItToItself(Good):
    def reset(self, task: Any, seed: int) -> Any:
        first = super().reset(task, seed)
        self.kept = {"a": [self.row, 0, 0]}
        return first

    def snapshot(self) -> Any:
        self.kept["a"] = [self.row, self.column, self.turn]
        return "a"

    def restore(self, state: Any) -> None:
        self.row, self.column, self.turn = self.kept[state]


class TakesAnyTask(Good):
    def reset(self, task: Any, seed: int) -> Any:
        return super().reset({}, seed)


class ClosesOnce(Good):
    closed = False

    def close(self) -> None:
        if self.closed:
            raise RuntimeError("already closed")
        self.closed = True


class LeavesThreads(Good):
    def __init__(self) -> None:
        super().__init__()
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()


class LeavesThreadsWhileOthersEnd(LeavesThreads):
    others: ClassVar[list[threading.Event]] = []

    def __init__(self) -> None:
        super().__init__()
        if not self.others:
            self.others.extend(threading.Event() for _ in range(32))
            for other in self.others:
                threading.Thread(target=other.wait, daemon=True).start()
        for _ in range(2):
            self.others.pop().set()


class LeavesFiles(Good):
    kept: ClassVar[list[Any]] = []

    def __init__(self) -> None:
        super().__init__()
        self.kept.append(open(os.devnull))  # noqa: SIM115


class LeavesProcesses(Good):
    kept: ClassVar[list[Any]] = []

    def __init__(self) -> None:
        super().__init__()
        self.kept.append(subprocess.Popen(["sleep", "20"]))


class Hangs(Good):
    def step(self, action: str) -> Any:
        while True:
            time.sleep(0.01)


class Crashes(Good):
    def step(self, action: str) -> Any:
        os.kill(os.getpid(), signal.SIGSEGV)


class Exits(Good):
    def step(self, action: str) -> Any:
        print("the emulator is gone", flush=True)
        os._exit(7)


class Warned(Good):
    def findings(self) -> list[str]:
        return ["the space is too wide"]


class Refused(Good):
    def findings(self) -> list[str]:
        return ["AssertionError: no observation space"]
