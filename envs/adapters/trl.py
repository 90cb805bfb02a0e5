"""A TRL environment class, as `GRPOTrainer(environment_factory=…)` takes it, unchanged.

What TRL 1.16 asks of it: `reset(**row)` returns None, a text or message parts; every other public method is
a tool, declared by its type hints and its docstring, but for `get_reward()`, which is asked once, at the end.
TRL itself is not needed.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from vlrl.envs.adapters.contents import observation_of
from vlrl.envs.adapters.json_values import random_value
from vlrl.errors import ConfigError
from vlrl.parsing.tool_calls import FORM, CallError, ParsedCall, parse_calls, write_call
from vlrl.protocols import Observation, StepResult
from vlrl.registry import resolve
from vlrl.seeds import derive_seed

_NOT_TOOLS = ("reset", "get_reward")


class TrlEnv:
    """Runs one instance of the class: tool calls of the model's text are its methods' calls.

    An exception inside a tool is answered to the model as TRL does it, {'error': …}; an OSError (the
    environment's own server is away, a disk is full) is the environment's failure and is raised.
    """

    def __init__(
        self,
        factory: str,
        args: Mapping[str, Any] | None = None,
        system_prompt: str = "",
        reward: str = "auto",
        max_iterations: int | None = None,
        success_above: float = 0.0,
    ) -> None:
        """Make the instance; it is reset for each episode.

        Args:
            factory: ./file.py:Class or package.module:Class, or anything else that returns an instance.
            args: of the factory; TRL itself calls it without any.
            system_prompt: instructions for the model.
            reward: "auto" is `get_reward()` where the class has it, else the attribute `reward`; another name
                is an attribute or a method; "none" leaves scoring to the run's rewards.
            max_iterations: rounds of tool calls that are answered (TRL's max_tool_calling_iterations); what
                the model says after them ends the episode.
            success_above: an episode whose reward is greater is a success.

        Raises:
            ConfigError: for a factory that cannot be loaded, or whose methods say too little for a schema.
        """
        self._name = factory
        self._instance = _made(factory, dict(args or {}))
        self._methods = _methods(self._instance, factory)
        self.tools: Sequence[Mapping[str, Any]] = [_schema(m, factory) for m in self._methods.values()]
        self.system_prompt = system_prompt
        self._reward = _reward_name(self._instance, reward, factory)
        self._max_iterations, self._success_above = max_iterations, success_above
        self._runner: asyncio.Runner | None = None
        self._num_iterations = 0

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        """Start an episode of a dataset row.

        Args:
            task: the row, given to the class's `reset` by keyword. "prompt" (a text, or one user message in a
                list) opens the conversation, with "image" or "images"; what `reset` returns is appended.
            seed: given as `seed`, derived, where `reset` names such an argument and the row has none.

        Raises:
            ConfigError: for a prompt of several messages.
        """
        row = dict(task)
        if "seed" in inspect.signature(self._instance.reset).parameters:
            row.setdefault("seed", derive_seed("trl", seed) % 2**31)
        self._num_iterations = 0
        opening = self._instance.reset(**row)
        images = task.get("images") or ([task["image"]] if task.get("image") is not None else [])
        parts = [{"type": "image", "image": image} for image in images]
        return observation_of([parts, _prompt(task.get("prompt", "")), opening], separator="")

    def step(self, action: str) -> StepResult:
        """Call the tools that the text asks for; a text without a call ends the episode and is rewarded."""
        calls = parse_calls(action)
        if not calls or self._num_iterations == self._max_iterations:
            return self._ended()
        self._num_iterations += 1
        contents: list[Any] = []
        num_errors = 0
        for call in calls:
            content, failed = self._called(call)
            contents.append(content)
            num_errors += failed
        info = {
            "num_tool_calls": len(calls),
            "num_tool_errors": num_errors,
            "invalid": all(isinstance(call, CallError) for call in calls),
        }
        return StepResult(observation_of(contents, "tool"), 0.0, False, False, info)

    def close(self) -> None:
        """End the loop of async tools; the class has no close of its own."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    def random_action(self, rng: np.random.Generator) -> str:
        """A call of some tool with arguments that its schema allows."""
        function = self.tools[int(rng.integers(len(self.tools)))]["function"]
        return write_call(function["name"], random_value(function["parameters"], rng))

    def _called(self, call: ParsedCall | CallError) -> tuple[Any, bool]:
        """A tool's result as message content, and whether it is an error."""
        if isinstance(call, CallError):
            return f"{{'error': '{call.message}; a call looks like {FORM}'}}", True
        try:
            if call.name not in self._methods:
                raise ValueError(f"Tool {call.name} not found. Tools are {', '.join(self._methods)}.")
            result = self._awaited(self._methods[call.name](**call.arguments))
        except OSError:
            raise
        except Exception as error:  # how the class says that a call is wrong, and TRL answers
            return str({"error": str(error)}), True
        return (result if isinstance(result, list) else str(result)), False

    def _ended(self) -> StepResult:
        reward = 0.0
        if self._reward is not None:
            given = getattr(self._instance, self._reward)
            reward = float(self._awaited(given() if callable(given) else given))
        info = {"success": reward > self._success_above} if self._reward is not None else {}
        return StepResult(Observation("The episode has ended."), reward, True, False, info)

    def _awaited(self, value: Any) -> Any:
        """The value; a coroutine is run in this instance's own loop, which lives as long as it does."""
        if not inspect.iscoroutine(value):
            return value
        self._runner = self._runner or asyncio.Runner()
        return self._runner.run(value)


def _made(factory: str, args: dict[str, Any]) -> Any:
    if ".py:" in factory:
        make = resolve("envs", factory)
    else:
        module, colon, attribute = factory.partition(":")
        if not colon:
            raise ConfigError(f"trl: factory={factory!r}; write ./file.py:Class or package.module:Class")
        try:
            make = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise ConfigError(f"trl: factory={factory!r} cannot be loaded: {error}") from error
    try:
        instance = make(**args)
    except TypeError as error:
        raise ConfigError(f"trl: {factory} does not take args={args}: {error}") from error
    if not callable(getattr(instance, "reset", None)):
        raise ConfigError(f"trl: {factory} has no method reset; TRL's environments have one")
    return instance


def _methods(instance: Any, factory: str) -> dict[str, Callable[..., Any]]:
    """The tools by name, as TRL finds them: the class's public methods."""
    names = [name for name, _ in inspect.getmembers(type(instance), inspect.isfunction)]
    found = {n: getattr(instance, n) for n in names if n not in _NOT_TOOLS and not n.startswith("_")}
    if not found:
        raise ConfigError(f"trl: {factory} has no public method beside reset, so the model could do nothing")
    return found


def _schema(method: Callable[..., Any], factory: str) -> Mapping[str, Any]:
    from transformers.utils import get_json_schema
    from transformers.utils.chat_template_utils import DocstringParsingException, TypeHintParsingException

    try:
        schema: Mapping[str, Any] = get_json_schema(method)
    except (DocstringParsingException, TypeHintParsingException) as error:
        raise ConfigError(
            f"trl: {factory}.{method.__name__} is a tool, and its declaration is not whole: {error} Every "
            "argument needs a type hint and a line under Args; a helper's name begins with an underscore"
        ) from error
    return schema


def _reward_name(instance: Any, reward: str, factory: str) -> str | None:
    if reward == "none":
        return None
    if reward != "auto":
        return reward
    if callable(getattr(type(instance), "get_reward", None)):
        return "get_reward"
    if hasattr(instance, "reward"):
        return "reward"
    raise ConfigError(
        f"trl: {factory} has neither get_reward() nor, once made, an attribute reward; set reward to the "
        "attribute's name, or to none if the run's rewards score the answers"
    )


def _prompt(prompt: Any) -> Any:
    if isinstance(prompt, str):
        return prompt
    if len(prompt) != 1 or prompt[0]["role"] != "user":
        roles = [message["role"] for message in prompt]
        raise ConfigError(
            f"trl: the task's prompt has the messages {roles}; one user message is read. Give the "
            "system message by the option system_prompt"
        )
    return prompt[0]["content"]
