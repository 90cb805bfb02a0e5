"""Rewards on the length of a completion, in tokens that the policy drew."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

from vlrl.errors import ConfigError
from vlrl.registry import resolve
from vlrl.types import Trajectory


def soft_overlong(
    completion: str, answer: Any, *, trajectory: Trajectory, max_tokens: int, buffer: int, **context: Any
) -> float:
    """A penalty that grows over the last tokens before the limit.

    With L tokens, L_max = max_tokens and L_cache = buffer:
        0 if L ≤ L_max − L_cache;  (L_max − L_cache − L) / L_cache up to L_max;  −1 beyond.
    Range [−1, 0]. Source: DAPO (arXiv 2503.14476), equation 13. L counts every token of the trajectory that
    the policy drew, the stop token and all turns included. Never positive, so nothing degenerate scores; an
    empty completion is not punished, which is the accuracy's task.

    Args:
        completion: not looked at.
        answer: not looked at.
        trajectory: whose tokens are counted.
        max_tokens: L_max, as a rule rollout.max_tokens.
        buffer: L_cache, tokens before the limit on which the penalty grows.
        context: not looked at.

    Raises:
        ConfigError: unless 0 < buffer ≤ max_tokens.
    """
    if not 0 < buffer <= max_tokens:
        raise ConfigError(f"soft_overlong: buffer={buffer} must be in 1 to max_tokens={max_tokens}")
    over = trajectory.num_action_tokens - (max_tokens - buffer)
    return -min(1.0, max(0.0, over / buffer))


async def cosine_length(
    completion: str,
    answer: Any,
    *,
    trajectory: Trajectory,
    max_tokens: int,
    accuracy: str = "answer_exact",
    accuracy_options: Mapping[str, Any] | None = None,
    threshold: float = 1.0,
    correct_short: float = 0.5,
    correct_long: float = 0.0,
    wrong_short: float = -0.5,
    wrong_long: float = 0.0,
    **context: Any,
) -> float:
    """A term to add to the accuracy: of right completions the short ones, of wrong ones the long ones gain.

    With t = min(L, max_tokens) / max_tokens, for L tokens that the policy drew, and (s, l) the short and
    long values of right or wrong: l + (s − l)·(1 + cos πt) / 2, which falls from s at no token to l at the
    limit and stays there. Right means that the reward `accuracy` is at least `threshold`.

    Range [min, max] of the four values: with the defaults [0, 0.5] if right, [−0.5, 0] if wrong. Source:
    Demystifying Long Chain-of-Thought (arXiv 2502.03373), its cosine reward without the penalty for reaching
    the limit, which is `soft_overlong`. It is an addend: give the accuracy itself as another reward. (VLM-R1
    puts the cosine in the accuracy's place, computed as if every completion were right, and lets the length
    run past the limit, where the cosine rises again.) Empty text scores the accuracy's minimum and −0.5
    here; a long wrong text gains at most the 0.5 that it is not punished by, and never more than a right
    one.

    Args:
        completion: what the model wrote.
        answer: what `accuracy` compares with.
        trajectory: whose tokens are counted, over all turns.
        max_tokens: length at which the long values are reached.
        accuracy: the reward that says what is right: a registered name or ./file.py:function.
        accuracy_options: its options.
        threshold: its least value, or sum of named parts, that is right.
        correct_short: of a right completion of no length.
        correct_long: of a right one at the limit.
        wrong_short: of a wrong one of no length.
        wrong_long: of a wrong one at the limit.
        context: given to `accuracy`, like the trajectory.

    Raises:
        ValueError: if `accuracy` finds the sample unusable.
        ConfigError: for max_tokens below 1, or values for which a wrong completion could gain more than a
            right one.
    """
    if max_tokens < 1:
        raise ConfigError(f"cosine_length: max_tokens={max_tokens} must be at least 1")
    if max(wrong_short, wrong_long) > min(correct_short, correct_long):
        raise ConfigError(
            "cosine_length: every wrong value must be at most every correct one, but "
            f"wrong_short={wrong_short}, wrong_long={wrong_long}, correct_short={correct_short}, "
            f"correct_long={correct_long}"
        )
    function, names = _accuracy(accuracy)
    given = {**context, "trajectory": trajectory}
    asked = given if names is None else {name: value for name, value in given.items() if name in names}
    value = function(completion, answer, **{**asked, **(accuracy_options or {})})
    if inspect.isawaitable(value):
        value = await value
    is_right = (sum(value.values()) if isinstance(value, Mapping) else value) >= threshold
    short, long = (correct_short, correct_long) if is_right else (wrong_short, wrong_long)
    share = min(trajectory.num_action_tokens, max_tokens) / max_tokens
    return long + (short - long) * (1.0 + math.cos(math.pi * share)) / 2.0


@functools.lru_cache(maxsize=16)
def _accuracy(name: str) -> tuple[Callable[..., Any], frozenset[str] | None]:
    """The reward, and the keywords it takes; None if it takes all."""
    function: Callable[..., Any] = resolve("rewards", name)
    parameters = list(inspect.signature(function).parameters.values())[2:]
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return function, None
    return function, frozenset(p.name for p in parameters)
