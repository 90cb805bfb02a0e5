"""The contract of a loss as a list of checks, each with a finding in terms that its author knows."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from vlrl.algorithm.off_policy import shape_problem
from vlrl.check.algorithms.tokens import LENGTHS, Constants, Tokens, Uneven, call, in_slices
from vlrl.config.algorithm import SHARED, AlgorithmConfig, bound_loss
from vlrl.errors import ConfigError

SPREADS = (0.0, 1e-4, 0.3)
"""Deviations of log π_θ / π_anchor: the first update, close to it, and far."""
STEP = 1e-6
EXTREMES = (-200.0, -30.0, -1.0, 0.0, 1.0, 30.0, 200.0)
"""Log-ratios; e^200 is beyond float32."""

LossFn = Callable[..., Any]
Clause = Callable[[Callable[..., Any]], str]
"""What is wrong with a function; empty if nothing is."""


def check_loss(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Try a loss; `ok` says whether it keeps the contract.

    Args:
        name: a registered one, or ./file.py:function.
        options: its own, and those beside it in the config, such as clip_low.

    Raises:
        ConfigError: for a name that is not there, a file that fails, or an option that is not read.
    """
    own, shared = divided(options, SHARED["loss"])
    config = config_of({"loss": {"name": name, "options": own}, **shared}, "loss")
    return judged(name, options, CLAUSES, bound_loss(config).__call__)


def divided(options: Mapping[str, Any], beside: Container[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A function's own options, and those that stand beside it in the config."""
    own = {key: value for key, value in options.items() if key not in beside}
    return own, {key: value for key, value in options.items() if key in beside}


def config_of(keys: Mapping[str, Any], what: str) -> AlgorithmConfig:
    """The algorithm's section with these keys.

    Raises:
        ConfigError: in the words of the key `what`, without its name.
    """
    try:
        return AlgorithmConfig.model_validate(keys)
    except ValueError as error:  # pydantic's is one
        (first, *_) = error.errors() if hasattr(error, "errors") else [{"msg": str(error)}]
        raise ConfigError(
            str(first["msg"]).removeprefix("Value error, ").removeprefix(f"{what}: ")
        ) from error


def judged(
    name: str, options: Mapping[str, Any], clauses: Mapping[str, Clause], function: Callable[..., Any]
) -> dict[str, Any]:
    """What each clause finds of a function; nothing after the first, if that fails."""
    checks: list[dict[str, Any]] = []
    for title, clause in clauses.items():
        try:
            problem = clause(function)
        except Exception as error:  # of whatever the author's code raises
            problem = f"raises {_raised(error)}"
        status = "fail" if problem else "ok"
        checks.append({"name": title, "status": status, "found": problem or MEANINGS[title], "findings": []})
        if problem and len(checks) == 1:
            break  # nothing else can be asked of it
    return {
        "name": name,
        "options": dict(options),
        "checks": checks,
        "ok": all(check["status"] == "ok" for check in checks),
    }


def verdict(result: Mapping[str, Any]) -> str:
    """A sentence."""
    failed = [check["name"] for check in result["checks"] if check["status"] == "fail"]
    return f"unsound: {', '.join(failed)}" if failed else "keeps the contract"


def returns(loss: LossFn) -> str:
    """The form of what it returns, for many tokens and for none, and its arguments as they were."""
    for tokens in (*_batches(), Tokens.generated(0, 0.3)[:0]):
        before = [values.clone() for values in tokens.tensors]
        if problem := shape_problem(call(loss, tokens), tokens.trainer_logprobs):
            return problem if len(tokens.advantages) else f"{problem}, for a micro-batch without tokens"
        if not all(torch.equal(a, b) for a, b in zip(before, tokens.tensors, strict=True)):
            return "changes its arguments in place; the trainer goes on using them"
    return ""


def finite(loss: LossFn) -> str:
    """Loss and gradient at log-ratios up to ±200, in float32."""
    for extreme in EXTREMES:
        for advantage in (-1.0, 0.0, 1.0):
            tokens = Tokens.generated(0, 0.0, torch.float32)
            trainer = tokens.trainer_logprobs.clone()
            trainer[::2] = -1.0
            anchor = trainer - extreme * (torch.arange(len(trainer)) % 2 == 0)
            tokens = tokens.with_(
                trainer_logprobs=trainer,
                anchor_logprobs=anchor,
                advantages=torch.full_like(trainer, advantage),
            )
            value, gradient = _gradient(loss, tokens)
            for what, found in (("loss", value), ("gradient", gradient)):
                if not torch.isfinite(found).all():
                    return (
                        f"the {what} is not finite where log π_θ - log π_anchor = {extreme:g} and the "
                        f"advantage is {advantage:g}; bound it, as vlrl.algorithm.loss.ratio_of does"
                    )
    return ""


def gradient(loss: LossFn) -> str:
    """Automatic differentiation against difference quotients; what the loss detaches is constant in both."""
    moved = False
    for tokens in _batches():
        weights = _weights(tokens)
        trainer = tokens.trainer_logprobs.clone().requires_grad_()
        constants = Constants()
        sums = constants.outside(tokens.sums)
        with constants:
            value = (call(loss, tokens.with_(trainer_logprobs=trainer), sums)[0] * weights).sum()
        if not value.requires_grad:
            return (
                "the loss has no gradient: neither sequence_sums nor what is detached carries one; multiply "
                "by (trainer_logprobs - trainer_logprobs.detach()).exp(), which is 1 and has it"
            )
        (found,) = torch.autograd.grad(value, trainer)
        moved = moved or bool(found.any())
        for i in range(len(found)):
            ends = []
            for shift in (STEP, -STEP):
                shifted = tokens.trainer_logprobs.clone()
                shifted[i] += shift
                with constants.replayed():
                    per_token = call(loss, tokens.with_(trainer_logprobs=shifted), sums)[0]
                ends.append(float((per_token * weights).sum()))
            quotient = (ends[0] - ends[1]) / (2 * STEP)
            if abs(quotient - float(found[i])) > 1e-4 * abs(quotient) + 1e-6:
                return (
                    f"the gradient of token {i} is {float(found[i]):.6g}, difference quotients say "
                    f"{quotient:.6g}; a sum over a sequence carries no gradient, and numbers taken out of "
                    "torch carry none"
                )
    return "" if moved else "no token has a gradient, wherever the policy is"


def zero_advantages(loss: LossFn) -> str:
    """Nothing is learnt where the advantage is 0: groups without a signal are left out of the pass."""
    for tokens in _batches():
        _, found = _gradient(loss, tokens.with_(advantages=torch.zeros_like(tokens.advantages)))
        if found.any():
            return (
                f"the gradient is up to {float(found.abs().max()):.3g} where all advantages are 0; groups "
                "whose advantages are 0 are not computed, so this term would be there for some tokens only"
            )
    return ""


def order(loss: LossFn) -> str:
    """Sequences in another order."""
    for tokens in _batches():
        parts = torch.split(torch.arange(sum(LENGTHS)), list(LENGTHS))
        index = torch.cat([parts[number] for number in (3, 0, 4, 2, 1)])
        if _differ(call(loss, tokens)[0][index], call(loss, tokens[index])[0]):
            return "a token's loss depends on the order of the sequences in its micro-batch"
    return ""


def packing(loss: LossFn) -> str:
    """The same sequences in one micro-batch and in two."""
    for tokens in _batches():
        cut = sum(LENGTHS[:2])
        parts = [call(loss, part)[0] for part in (tokens[:cut], tokens[cut:])]
        if _differ(call(loss, tokens)[0], torch.cat(parts)):
            return (
                "a token's loss depends on which other sequences are in its micro-batch; means and "
                "deviations belong into the advantage, averages into algorithm.aggregation"
            )
    return ""


def slices(loss: LossFn) -> str:
    """A sequence on two ranks (trainer.sequence_parallel), and a rank without tokens."""
    for tokens in _batches():
        for cut in (sum(LENGTHS[:2]) + 2, sum(LENGTHS)):
            try:
                parts = [returned[0] for returned in in_slices(loss, tokens, cut)]
            except Uneven:
                return "asks for more sequence_sums on one slice than on the other: ranks would wait forever"
            if _differ(call(loss, tokens)[0], torch.cat(parts)):
                return (
                    "a token's loss depends on how its sequence is cut into slices; add up over a sequence "
                    "with sequence_sums"
                )
    return ""


CLAUSES: Mapping[str, Clause] = {
    "returns": returns,
    "finite": finite,
    "gradient": gradient,
    "zero advantages": zero_advantages,
    "order": order,
    "packing": packing,
    "slices": slices,
}
"""Clause → what is wrong; empty if nothing is."""

MEANINGS = {
    "returns": "a loss and a bool for each token, and for no tokens",
    "finite": "loss and gradient at log-ratios up to ±200 in float32",
    "gradient": "agrees with difference quotients in float64",
    "zero advantages": "have a gradient of exactly 0",
    "order": "of the sequences makes no difference",
    "packing": "into one micro-batch or two makes no difference",
    "slices": "of a sequence on two ranks make no difference",
    "on policy": "the gradient is the policy gradient's",
    "two numbers": "factors and penalties for each token, and for one",
    "any order": "of the tokens makes no difference",
    "same again": "with the same seed",
    "ties": "are chosen together",
    "numbers": "one for each episode, or one a turn, for rewards that are far, close or equal",
    "members": "in any order get the same",
    "steps": "of an episode get a finite number each, whatever their rewards and values",
    "repeats": "to the last bit",
}


def _batches() -> Iterator[Tokens]:
    for seed, spread in enumerate(SPREADS):
        yield Tokens.generated(seed, spread)


def _weights(tokens: Tokens) -> Tensor:
    """What aggregation could give: positive, the same for all tokens of a sequence."""
    return torch.linspace(0.5, 1.5, len(LENGTHS), dtype=torch.float64)[tokens.sequence_ids]


def _gradient(loss: LossFn, tokens: Tokens) -> tuple[Tensor, Tensor]:
    trainer = tokens.trainer_logprobs.clone().requires_grad_()
    value = call(loss, tokens.with_(trainer_logprobs=trainer))[0]
    if not value.requires_grad:
        return value, torch.zeros_like(trainer)
    (found,) = torch.autograd.grad(value.sum(), trainer)
    return value.detach(), found


def _differ(one: Tensor, other: Tensor) -> bool:
    return not torch.allclose(one, other, rtol=1e-9, atol=1e-12)


def _raised(error: Exception) -> str:
    """What the author's code raised, and where."""
    frames = traceback.extract_tb(error.__traceback__)
    last = next((f for f in reversed(frames) if "/torch/" not in f.filename), None)
    place = f" ({last.filename}, line {last.lineno})" if last else ""
    return f"{type(error).__name__}: {error}{place}"
