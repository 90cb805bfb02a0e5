"""Null policies in an environment: returns of one action at every turn, beside those of random actions.

Null agents are fitted on a random half of the episodes and scored on the other, both ways:

    usual action    the right action (`oracle`) that episodes most often begin with, at every turn
    best action     of several (right first ones, blind ones, a click in the middle, giving up) the one that
                    solves most, at every turn
    no image        the right first action that the same words were most often answered with, at every turn

Chance is `random_action`, on the same episodes; without one it is 0. A null agent is marked that solves more
than MARGIN above chance, and three standard errors: there are few episodes.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from vlrl.check.envs.episodes import Request, Watched, random_policy
from vlrl.check.envs.verdict import EnvCheck
from vlrl.environment.observe import digest_of
from vlrl.errors import NoOracle
from vlrl.seeds import derive_seed

MARGIN = 0.05
MAX_CANDIDATES = 6
STILL_TURNS = 5
"""A null agent that earns nothing and sees the same for so many turns has not solved the episode."""

_TITLE = "null agents"


@dataclass(frozen=True, slots=True)
class NullAgent:
    """What one null agent earns.

    Attributes:
        name: of the agent.
        solved: share of episodes.
        chance: share that blind actions solve.
        error: standard error of the difference.
        example: the action it takes most.
    """

    name: str
    solved: float
    chance: float
    error: float
    example: str

    @property
    def excess(self) -> float:
        """Solved less chance."""
        return self.solved - self.chance

    @property
    def is_marked(self) -> bool:
        """True if the environment can be won by it."""
        return self.excess > MARGIN and self.excess > 3 * self.error


def null_check(env: Watched, request: Request) -> EnvCheck:
    """Whether the environment can be won without looking."""
    agents = null_agents(env, request)
    if not agents:
        return EnvCheck(_TITLE, "info", "it has neither oracle nor random_action: no null agent can be made")
    found = "; ".join(f"{a.name} {a.solved:.2f}" for a in agents) + f"; chance {agents[0].chance:.2f}"
    marked = [
        f"{a.name} solves {a.solved:.2f} of the episodes by {a.example!r}" for a in agents if a.is_marked
    ]
    return EnvCheck(_TITLE, "warn" if marked else "ok", found, marked)


def null_agents(env: Watched, request: Request, chance_plays: int = 1) -> list[NullAgent]:
    """Every null agent on the episodes of a request.

    Args:
        env: under check.
        request: its `episodes` are played by each of up to MAX_CANDIDATES fixed actions, and by chance.
        chance_plays: blind plays of each episode.
    """
    indices = range(request.episodes)
    words, firsts = _beginnings(env, request, indices)
    chances = np.asarray([_chance(env, request, index, chance_plays) for index in indices])
    candidates = _candidates(env, request, firsts)
    if not candidates:
        return []
    table = {action: [_solves(env, request, i, action) for i in indices] for action in candidates}
    fits: Mapping[str, Callable[[Sequence[int]], Callable[[int], str]]] = {
        "usual action": lambda fit: _always(_usual([firsts[i] for i in fit], candidates)),
        "best action": lambda fit: _always(max(candidates, key=lambda a: sum(table[a][i] for i in fit))),
        "no image": lambda fit: _by_words(fit, words, firsts, candidates),
    }
    order = np.random.default_rng(0).permutation(len(indices)).tolist()
    agents = []
    for name, fitted in fits.items():
        if not any(firsts) and name != "best action":
            continue
        solved, taken = np.zeros(len(indices)), Counter[str]()
        for half in (0, 1):
            answer = fitted(order[1 - half :: 2])
            for index in order[half::2]:
                action = answer(index)
                taken[action] += 1
                known = table.get(action)
                solved[index] = known[index] if known else _solves(env, request, index, action)
        error = float((solved - chances).std() / math.sqrt(len(indices)))
        example = taken.most_common(1)[0][0]
        agents.append(NullAgent(name, float(solved.mean()), float(chances.mean()), error, example[:80]))
    return agents


def _beginnings(env: Watched, request: Request, indices: Iterable[int]) -> tuple[list[str], list[str]]:
    """Words that every episode begins with, and the right first action; "" where none is known."""
    words, firsts = [], []
    for index in indices:
        observation = env.reset(request.task, request.episode_seed(index))
        words.append(" ".join(observation.text.casefold().split()))
        action = ""
        if env.has("oracle"):
            with suppress(NoOracle):
                action = str(env.call("oracle"))
        firsts.append(action)
    return words, firsts


def _candidates(env: Watched, request: Request, firsts: Sequence[str]) -> list[str]:
    """Actions that may be tried at every turn, the most frequent right ones first."""
    found = [action for action, _ in Counter(a for a in firsts if a).most_common(MAX_CANDIDATES // 2)]
    env.reset(request.task, request.episode_seed(0))
    found += _of_screens(env)
    if env.has("random_action"):
        rng = np.random.default_rng(derive_seed("null agents", request.seed))
        found += [str(env.call("random_action", rng)) for _ in range(MAX_CANDIDATES)]
    return list(dict.fromkeys(found))[:MAX_CANDIDATES]


def _of_screens(env: Watched) -> list[str]:
    """Blind actions on a screen, in its grammar: a click in the middle, and the words that end an episode."""
    say: Any = getattr(env.plain.env, "null_actions", None)
    return [str(action) for action in say()] if callable(say) else []


def _solves(env: Watched, request: Request, index: int, action: str) -> bool:
    """Whether an action, said at every turn, solves an episode."""
    return _played(env, request, index, lambda: action, STILL_TURNS)


def _chance(env: Watched, request: Request, index: int, num_plays: int) -> float:
    """The share of blind plays that solve an episode."""
    if not env.has("random_action"):
        return 0.0
    rng = np.random.default_rng(derive_seed("null agents", "chance", request.seed, index))
    plays = [_played(env, request, index, lambda: random_policy(env, rng)) for _ in range(num_plays)]
    return sum(plays) / num_plays


def _played(
    env: Watched, request: Request, index: int, say: Callable[[], str], still_turns: int | None = None
) -> bool:
    """Whether actions that do not depend on what is shown solve an episode.

    Args:
        env: under check.
        request: for the task, the seed and the longest episode.
        index: of the episode.
        say: gives the next action.
        still_turns: turns without reward or change after which it is given up; None never.
    """
    env.reset(request.task, request.episode_seed(index))
    total, last, num_still = 0.0, "", 0
    for _ in range(request.max_turns):
        result = env.step(say())
        total += float(result.reward)
        if result.terminated or result.truncated:
            return bool(result.info.get("success", total > 0))
        shown = digest_of(result.observation) if still_turns else ""
        num_still = num_still + 1 if shown == last and not result.reward else 0
        if still_turns and num_still >= still_turns:
            return False
        last = shown
    return False


def _usual(firsts: Sequence[str], candidates: Sequence[str]) -> str:
    counts = Counter(action for action in firsts if action)
    return min(counts, key=lambda action: (-counts[action], action)) if counts else candidates[0]


def _always(action: str) -> Callable[[int], str]:
    return lambda index: action


def _by_words(
    fit: Sequence[int], words: Sequence[str], firsts: Sequence[str], candidates: Sequence[str]
) -> Callable[[int], str]:
    """Answer without the image: what episodes that begin with the same words most often began with."""
    given: dict[str, list[str]] = defaultdict(list)
    for index in fit:
        given[words[index]].append(firsts[index])
    overall = _usual([firsts[index] for index in fit], candidates)
    best = {said: _usual(actions, [overall]) for said, actions in given.items()}
    return lambda index: best.get(words[index], overall)
