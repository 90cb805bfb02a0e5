"""Episodes of an environment as rows of a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Literal

from vlrl.environment.kept import KeptEnvs
from vlrl.environment.observe import message_of
from vlrl.environment.plain import PlainEnv
from vlrl.errors import ConfigError, DataError
from vlrl.processors.messages import message_of as text_message
from vlrl.protocols import Observation
from vlrl.registry.objects import label_of
from vlrl.seeds import derive_seed
from vlrl.types import Row


class EnvTasks:
    """Rows that are episodes to be played: a row is the task, and what the environment shows first.

    With demonstrations a row is the whole episode as the environment's own oracle plays it, the last action
    being the target: for a warm start by `vlrl sft`. Of several agents each has rows of its own, in turn.
    """

    def __init__(
        self,
        env: str,
        options: Mapping[str, Any] | None = None,
        num_rows: int = 4096,
        tasks: Sequence[Mapping[str, Any]] = ({},),
        split: Literal["train", "heldout"] = "train",
        seed: int = 0,
        demonstrations: bool = False,
        max_turns: int = 64,
    ) -> None:
        """Choose the episodes.

        Args:
            env: a registered name, or ./file.py:Class; from Python, a class.
            options: the environment's own.
            num_rows: episodes, each of its own seed.
            tasks: given to `reset` in turn.
            split: the two never share a seed.
            seed: of the episodes' seeds.
            demonstrations: play each row's episode to its end.
            max_turns: longest demonstration.

        Raises:
            ConfigError: for a wrong option, or demonstrations without an oracle.
        """
        self._label = label_of(env)
        where = f"dataset env ({self._label})"
        if split not in ("train", "heldout"):
            raise ConfigError(f"{where}: split={split!r} is not one of train, heldout")
        if num_rows < 1 or max_turns < 1:
            raise ConfigError(f"{where}: num_rows={num_rows} and max_turns={max_turns} must be at least 1")
        if isinstance(tasks, str | Mapping) or not all(isinstance(t, Mapping) for t in tasks) or not tasks:
            raise ConfigError(f"{where}: tasks={tasks!r} must be a list of one or more mappings")
        self._env, self._options, self._tasks = env, dict(options or {}), [dict(task) for task in tasks]
        self._num_rows, self._split, self._seed = num_rows, split, seed
        self._demonstrations, self._max_turns = demonstrations, max_turns
        self._envs = KeptEnvs(env, self._options)
        with self._envs.episode() as opened:
            self._agents = opened.agents
            if demonstrations and not opened.has("oracle"):
                raise ConfigError(f"{where}: it has no oracle to demonstrate it; set demonstrations: false")

    def __len__(self) -> int:
        """Number of rows."""
        return self._num_rows

    def __getitem__(self, index: int) -> Row:
        """Row `index`, the same for the same options on every machine.

        Raises:
            DataError: if the oracle does not bring the episode to a good end.
        """
        if self._agents and self._demonstrations:
            return self._row_of_agent(*divmod(index, len(self._agents)))
        task, seed = self._tasks[index % len(self._tasks)], self.episode_seed(index)
        name = f"{self._label}/{self._split}/{index}"
        messages: list[dict[str, Any]] = []
        row: dict[str, Any] = {
            "id": name,
            "messages": messages,
            "env": {"name": self._env, "options": self._options, "task": task, "seed": seed},
            "answer": None,
        }
        if self._agents:  # each is told and shown its own when it is played
            messages.append(text_message("user", f"Played by {', '.join(self._agents)}."))
            return row
        with self._envs.episode() as env:
            if env.system_prompt:
                messages.append(text_message("system", env.system_prompt))
            messages.append(_message(env.reset(task, seed)))
            if info := dict(getattr(env.env, "task_info", None) or {}):
                row["metadata"] = info
            if env.tools:
                row["tools"] = [dict(tool) for tool in env.tools]
            if self._demonstrations:
                row["target"] = self._demonstrate(env, messages, name)
            return row

    def episode_seed(self, index: int) -> int:
        """The seed of row `index`: even in train, odd in heldout, so that they cannot meet."""
        seed = derive_seed("env rows", self._label, self._seed, self._split, index)
        return seed // 2 * 2 + (self._split == "heldout")

    def _row_of_agent(self, episode: int, number: int) -> Row:
        """What one agent sees and does in an episode that the oracle plays for all."""
        agent = self._agents[number]
        name = f"{self._label}/{self._split}/{episode}/{agent}"
        task, seed = self._tasks[episode % len(self._tasks)], self.episode_seed(episode)
        with self._envs.episode() as env:
            prompt = getattr(env.env, "system_prompts", {}).get(agent, "")
            messages = [text_message("system", prompt)] if prompt else []
            views, target = env.call("reset", task, seed), None
            for _ in range(self._max_turns):
                if agent in views:
                    messages += [] if target is None else [text_message("assistant", target)]
                    messages.append(_message(views[agent]))
                actions = {each: str(env.call("oracle", each)) for each in views}
                target = actions.get(agent, target)
                results = env.call("step", actions)
                own = results.get(agent)
                if own is not None and (own.terminated or own.truncated):
                    if target is None or not own.info.get("success", True):
                        raise DataError(f"sample {name!r}: the oracle's episode ends without success")
                    return {"id": name, "messages": messages, "answer": None, "target": target}
                views = {a: r.observation for a, r in results.items() if not (r.terminated or r.truncated)}
        raise DataError(f"sample {name!r}: {self._unended}")

    @property
    def _unended(self) -> str:
        return f"the oracle has not ended the episode after {self._max_turns} turns; set max_turns"

    def _demonstrate(self, env: PlainEnv, messages: list[dict[str, Any]], name: str) -> str:
        """Let the oracle play; the last action, everything before it being appended to `messages`."""
        for _ in range(self._max_turns):
            action = str(env.call("oracle"))
            result = env.step(action)
            if result.terminated or result.truncated:
                if not result.info.get("success", True):
                    raise DataError(f"sample {name!r}: the oracle's episode ends without success")
                return action
            messages += [text_message("assistant", action), _message(result.observation)]
        raise DataError(f"sample {name!r}: {self._unended}")


def _message(observation: Observation) -> dict[str, Any]:
    """What is shown, copied: the environment may draw its next image into the same memory."""
    return message_of(deepcopy(observation))
