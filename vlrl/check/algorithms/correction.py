"""The contract of a correction: that of a loss, with PPO's inside it, and no change to fresh tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import torch
from torch import Tensor

from vlrl.algorithm.off_policy import corrected_surrogate
from vlrl.check.algorithms.check import CLAUSES, SPREADS, Clause, config_of, divided, finite, judged
from vlrl.check.algorithms.tokens import Tokens, call
from vlrl.config.algorithm import AlgorithmConfig
from vlrl.config.asynchronous import CORRECTION_KEYS
from vlrl.model.logprobs import DeviceBatch


def check_correction(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Try a correction; `ok` says whether it keeps the contract.

    Args:
        name: a registered one, or ./file.py:function.
        options: its own, and those beside it in the config, such as cap.

    Raises:
        ConfigError: for a name that is not there, a file that fails, or an option that is not read.
    """
    own, shared = divided(options, CORRECTION_KEYS)
    config = config_of({"correction": {"kind": name, "options": own, **shared}}, "kind")

    def far(loss: Callable[..., Any]) -> str:
        """Finite around either policy: the one that generated the token may be as far as the proximal one."""
        return finite(loss) or finite(lambda *given, **context: _around_sampler(config, *given, **context))

    clauses: dict[str, Clause] = {**CLAUSES, "finite": far, "on policy": on_policy}
    return judged(name, options, clauses, lambda *given, **context: _corrected(config, *given, **context))


def on_policy(loss: Callable[..., Any]) -> str:
    """Where all three policies agree, the gradient is -A: a fresh token needs no correction."""
    for seed in range(len(SPREADS)):
        tokens = Tokens.generated(seed, 0.0)
        trainer = tokens.trainer_logprobs.clone().requires_grad_()
        fresh = tokens.with_(trainer_logprobs=trainer, sampler_logprobs=tokens.anchor_logprobs)
        (found,) = torch.autograd.grad(call(loss, fresh)[0].sum(), trainer)
        if not torch.allclose(found, -tokens.advantages):
            worst = int((found + tokens.advantages).abs().argmax())
            return (
                f"the gradient is {float(found[worst]):.6g} where the advantage is "
                f"{float(tokens.advantages[worst]):.6g} and no policy differs from another; the weight of "
                "ρ = 1 must be 1"
            )
    return ""


def _corrected(
    config: AlgorithmConfig,
    trainer_logprobs: Tensor,
    anchor_logprobs: Tensor,
    advantages: Tensor,
    *,
    sequence_sums: Callable[[Tensor], Tensor],
    sampler_logprobs: Tensor,
) -> tuple[Tensor, Tensor]:
    """The corrected loss as if it were a loss; the anchor is the proximal policy."""
    tokens = SimpleNamespace(
        sampler_logprobs=sampler_logprobs,
        proximal_logprobs=anchor_logprobs,
        advantages=advantages,
        token_staleness=torch.zeros(len(advantages), dtype=torch.int64),
        sequence_ids=None,
    )
    found = corrected_surrogate(
        trainer_logprobs, cast(DeviceBatch, tokens), config, lambda values, _: sequence_sums(values)
    )
    return found.loss, found.stopped


def _around_sampler(
    config: AlgorithmConfig,
    trainer_logprobs: Tensor,
    anchor_logprobs: Tensor,
    advantages: Tensor,
    *,
    sequence_sums: Callable[[Tensor], Tensor],
    sampler_logprobs: Tensor,
) -> tuple[Tensor, Tensor]:
    """The same in a step's first update: the anchor generated the tokens, and the proximal policy learns."""
    return _corrected(
        config,
        trainer_logprobs,
        trainer_logprobs.detach(),
        advantages,
        sequence_sums=sequence_sums,
        sampler_logprobs=anchor_logprobs,
    )
