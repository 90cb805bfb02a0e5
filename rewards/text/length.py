"""Rewards on the length of a completion, in tokens that the policy generated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from vlrl.coordinates import Canvas
from vlrl.errors import ConfigError
from vlrl.rewards.inner import inner_reward
from vlrl.scoring.author import reward
from vlrl.types import Media


@reward(range=(-1.0, 0.0))
def soft_overlong(completion: str, answer: Any, *, num_tokens: int, max_tokens: int, buffer: int) -> float:
    """A penalty that grows over the last tokens before the limit.

    With L tokens, L_max = max_tokens and L_cache = buffer:
        0 if L ≤ L_max − L_cache;  (L_max − L_cache − L) / L_cache up to L_max;  −1 beyond.
    Range [−1, 0]. Source: DAPO (arXiv 2503.14476), equation 13. L counts every token of the trajectory that
    the policy generated, the stop token and all turns included. Never positive, so nothing degenerate scores;
    an empty completion is not punished, which is the accuracy's task.

    Args:
        completion: not looked at.
        answer: not looked at.
        num_tokens: L.
        max_tokens: L_max, as a rule rollout.max_tokens.
        buffer: L_cache, tokens before the limit on which the penalty grows.

    Raises:
        ConfigError: unless 0 < buffer ≤ max_tokens.
    """
    if not 0 < buffer <= max_tokens:
        raise ConfigError(f"soft_overlong: buffer={buffer} must be in 1 to max_tokens={max_tokens}")
    return -min(1.0, max(0.0, (num_tokens - (max_tokens - buffer)) / buffer))


def cosine_length(
    completion: str,
    answer: Any,
    *,
    num_tokens: int,
    max_tokens: int,
    accuracy: str = "answer_exact",
    accuracy_options: Mapping[str, Any] | None = None,
    threshold: float = 1.0,
    correct_short: float = 0.5,
    correct_long: float = 0.0,
    wrong_short: float = -0.5,
    wrong_long: float = 0.0,
    canvases: Sequence[Canvas] = (),
    **context: Any,
) -> float:
    """A term to add to the accuracy: of right completions the short ones gain, of wrong ones the long ones.

    With t = min(L, max_tokens) / max_tokens, for L tokens that the policy generated, and (s, l) the short and
    long values of right or wrong: l + (s − l)·(1 + cos πt) / 2, which goes from s at no token to l at the
    limit and stays there. Right means that the reward `accuracy` is at least `threshold`.

    Range: that of the four values; with the defaults [0, 0.5] if right, [−0.5, 0] if wrong. Source:
    Demystifying Long Chain-of-Thought (arXiv 2502.03373), its cosine reward without the penalty for reaching
    the limit, which is `soft_overlong`. It is an addend: give the accuracy itself as another reward. (VLM-R1
    puts the cosine in the accuracy's place, computed as if every completion were right, and lets the length
    run past the limit, where the cosine rises again.) No wrong completion, empty or degenerate, gets more
    than a right one, nor with the defaults more than 0.

    Args:
        completion: what the model wrote.
        answer: what `accuracy` compares with.
        num_tokens: L, over all turns.
        max_tokens: length at which the long values are reached.
        accuracy: the reward that says what is right: a registered name or ./file.py:function. If it looks at
            pixels, use `cosine_length_media`.
        accuracy_options: its options.
        threshold: its least value that is right.
        correct_short: of a right completion of no length.
        correct_long: of a right one at the limit.
        wrong_short: of a wrong one of no length.
        wrong_long: of a wrong one at the limit.
        canvases: sizes of the sample's media, for an `accuracy` on places.
        context: the sample's metadata, for `accuracy`.

    Raises:
        ValueError: if `accuracy` finds the sample unusable.
        ConfigError: for max_tokens below 1, an async or batched accuracy, or values with which a wrong
            completion could gain more than a right one.
    """
    if max_tokens < 1:
        raise ConfigError(f"cosine_length: max_tokens={max_tokens} must be at least 1")
    if max(wrong_short, wrong_long) > min(correct_short, correct_long):
        raise ConfigError(
            "cosine_length: every wrong value must be at most every correct one, but "
            f"wrong_short={wrong_short}, wrong_long={wrong_long}, correct_short={correct_short}, "
            f"correct_long={correct_long}"
        )
    inner = inner_reward(accuracy, accuracy_options, "cosine_length")
    given = {**context, "num_tokens": num_tokens, "canvases": canvases}
    is_right = inner(completion, answer, given) >= threshold
    short, long = (correct_short, correct_long) if is_right else (wrong_short, wrong_long)
    share = min(num_tokens, max_tokens) / max_tokens
    return long + (short - long) * (1.0 + math.cos(math.pi * share)) / 2.0


def cosine_length_media(
    completion: str, answer: Any, *, num_tokens: int, media: Sequence[Media], **context: Any
) -> float:
    """`cosine_length` of an accuracy that looks at the pixels of media; the same options."""
    return cosine_length(completion, answer, num_tokens=num_tokens, media=media, **context)
