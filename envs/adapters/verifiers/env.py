"""An environment of the `verifiers` library (0.4), as it is: its tasks, tools, turns and rewards."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import numpy as np

from vlrl.envs.adapters.contents import observation_of, sendable
from vlrl.envs.adapters.json_values import random_value
from vlrl.envs.adapters.verifiers.process import process_of
from vlrl.errors import ConfigError
from vlrl.foreign.program import ForeignProgram, Gone
from vlrl.parsing.tool_calls import FORM, CallError, ParsedCall, parse_calls, thinking_ends, write_call
from vlrl.protocols import Observation, StepResult
from vlrl.seeds import derive_seed


class VerifiersEnv:
    """One episode at a time; all of them with the same options share one program that runs verifiers.

    A call that verifiers makes of its model is this environment's observation, the model's text the answer;
    tool calls in it are given to verifiers as such, and their results come back from its own tools. The
    episode's rewards come at its end. What fails there is raised, never scored (law 7).
    """

    def __init__(
        self,
        id: str,
        args: Mapping[str, Any] | None = None,
        python: str | None = None,
        timeout_s: float = 120.0,
        linger_s: float = 60.0,
        success_above: float = 0.0,
    ) -> None:
        """Load the environment.

        Args:
            id: of an installed environment or taskset; ./file.py of a taskset; or ./file.py:load_environment,
                a function that returns an Env.
            args: the environment's config as verifiers takes it, such as {taskset: {split: test}, agent:
                {max_turns: 5}}; of a function, its arguments.
            python: the interpreter that has verifiers; null is the one that runs vlrl.
            timeout_s: for a reset or a step; the program is ended if it hangs altogether.
            linger_s: how long the program stays when no episode is played.
            success_above: an episode whose reward is greater is a success.

        Raises:
            ConfigError: if it cannot be loaded.
        """
        self._id, self._args, self._python = id, dict(args or {}), python
        self._timeout_s, self._linger_s, self._success_above = timeout_s, linger_s, success_above
        self._episode = uuid.uuid4().hex
        self._process: ForeignProgram | None = None
        about = self._ask("describe")
        self._num_tasks: int | None = about["num_tasks"]
        self.tools: Sequence[Mapping[str, Any]] = about["tools"]
        self.system_prompt = observation_of(about["system"]).text

    def num_tasks(self) -> int:
        """Tasks of the environment.

        Raises:
            ConfigError: if they are endless.
        """
        if self._num_tasks is None:
            raise ConfigError(f"verifiers: {self._id} makes tasks without end; give each task its index")
        return self._num_tasks

    def task(self, index: int) -> Mapping[str, Any]:
        """A task for `reset`: {"index", "key", "data"}, of which `reset` reads the index."""
        return {"index": index, **self._ask("task", index=index)}

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        """Start an episode.

        Args:
            task: "index" of verifiers' task; without it the seed draws one.
            seed: draws the task; verifiers itself takes none.

        Raises:
            ConfigError: for an index that is none.
        """
        if unknown := sorted(task.keys() - {"index", "key", "data"}):
            raise ConfigError(f"verifiers: {self._id}: the task has {unknown[0]!r}; index is read")
        index = task.get("index")
        if index is None:
            index = derive_seed("verifiers", seed) % self.num_tasks()
        count = self._num_tasks
        if type(index) is not int or index < 0 or (count is not None and index >= count):
            last = "" if count is None else count - 1
            raise ConfigError(f"verifiers: {self._id}: index={index!r} of a task must be in 0…{last}")
        asked = self._ask("reset", episode=self._episode, index=index)
        if "result" in asked:
            raise RuntimeError(f"verifiers: {self._id}: task {index} ended without asking the model")
        return self._observation(asked)

    def step(self, action: str) -> StepResult:
        """Give the text to verifiers as the model's answer; a tool call that cannot be read is answered."""
        calls = parse_calls(action) if self.tools else []
        wrong = [call for call in calls if isinstance(call, CallError)]
        if wrong:
            text = "\n".join(f"{call.message}." for call in wrong) + f" A call looks like {FORM}"
            return StepResult(Observation(text, role="tool"), 0.0, False, False, {"invalid": True})
        assert self._process is not None
        good = [call for call in calls if isinstance(call, ParsedCall)]
        said = self._process.ask(
            "step",
            self._timeout_s,
            episode=self._episode,
            **_spoken(action, good),
            tool_calls=[{"name": call.name, "arguments": dict(call.arguments)} for call in good],
        )
        if "result" not in said:
            return StepResult(self._observation(said), 0.0, False, False, {"num_tool_calls": len(good)})
        result = said["result"]
        info: dict[str, Any] = {"success": result["reward"] > self._success_above}
        info |= {f"reward/{name}": value for name, value in result["parts"].items()}
        info |= {f"metric/{name}": value for name, value in result["metrics"].items()}
        return StepResult(Observation("The episode has ended."), float(result["reward"]), True, False, info)

    def close(self) -> None:
        """End the episode; the program stays for others."""
        if self._process is not None and self._process.alive:
            with suppress(Gone, TimeoutError):  # and the episode with it
                self._process.ask("close", self._timeout_s, episode=self._episode)
        self._process = None

    def random_action(self, rng: np.random.Generator) -> str:
        """A call of some tool, or a word."""
        if not self.tools or rng.random() < 0.25:
            return str(random_value({"type": "string"}, rng))
        function = self.tools[int(rng.integers(len(self.tools)))]["function"]
        return write_call(function["name"], random_value(function["parameters"], rng))

    def _ask(self, method: str, **request: Any) -> Any:
        """Ask the program, once more if it had just ended for lack of work."""
        for attempt in range(2):
            self._process = process_of(self._python, self._id, self._args, self._linger_s)
            try:
                return self._process.ask(method, self._timeout_s, **request)
            except Gone:
                if attempt:
                    raise
        raise AssertionError("unreachable")

    def _observation(self, asked: Mapping[str, Any]) -> Observation:
        """The messages that a call adds; a system message that is not the declared one opens the text."""
        self.tools = asked["tools"]
        messages = asked["messages"]
        if any(message["role"] == "assistant" for message in messages):
            raise ValueError(
                f"verifiers: {self._id}: the prompt holds answers of a model; examples belong in its text"
            )
        role: Literal["user", "tool"] = "tool" if all(m["role"] == "tool" for m in messages) else "user"
        shown = [
            message["content"]
            for message in messages
            if message["role"] != "system" or observation_of([message["content"]]).text != self.system_prompt
        ]
        return observation_of(shown, role)


def _spoken(text: str, calls: Sequence[ParsedCall]) -> dict[str, str]:
    """Thinking and what is said beside the calls, apart, as servers of reasoning models give them."""
    start = thinking_ends(text)
    thinking, kept = sendable(text[:start]).strip(), []
    for call in calls:
        kept.append(text[start : call.span[0]])
        start = call.span[1]
    thinking = thinking.removeprefix("<think>").removesuffix("</think>").strip()
    return {"content": sendable("".join([*kept, text[start:]])).strip(), "thinking": thinking}
