"""Corrections as plug-ins: built-in ones as they were, a stranger's from a file, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from vlrl.algorithm.loss import clipped_surrogate
from vlrl.algorithm.off_policy import Surrogate, corrected_surrogate, sequence_sums
from vlrl.check.algorithms.kinds import check_function
from vlrl.config import parse_config
from vlrl.config.algorithm import AlgorithmConfig
from vlrl.config.asynchronous import CorrectionConfig
from vlrl.errors import ConfigError
from vlrl.registry import BUILT_IN

HALF = """
def half(sampler_logprobs, *, proximal_logprobs, token_staleness, share=0.5):
    weights = (proximal_logprobs - sampler_logprobs).exp() ** share
    return weights, token_staleness > 3
"""
OWN_LOSS = """
def own(sampler_logprobs, *, trainer_logprobs, advantages, sequence_sums):
    lengths = sequence_sums(advantages * 0 + 1)
    loss = -advantages * (trainer_logprobs - sampler_logprobs).clamp(-20, 20).exp() / lengths
    return loss, advantages > 9, advantages > 9
"""


def batch(seed: int = 0, dtype: torch.dtype = torch.float32) -> Any:
    """64 tokens of eight ledgers, off-policy, without the trainer's log-probabilities."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(3, 64, generator=generator).to(dtype)
    sampler = -1 - noise[0].abs()
    return SimpleNamespace(
        sampler_logprobs=sampler,
        proximal_logprobs=sampler + noise[1],
        advantages=noise[2],
        token_staleness=torch.arange(64) % 5,
        sequence_ids=torch.arange(64) % 8,
    )


def corrected(tokens: Any, trainer: Tensor, **correction: Any) -> Surrogate:
    return corrected_surrogate(trainer, tokens, AlgorithmConfig(correction=CorrectionConfig(**correction)))


def weights_by_hand(kind: str, log_ratios: Tensor, level: str) -> Tensor:
    """The formulas of docs/asynchronous.md."""
    ids = torch.arange(64) % 8
    ratios = (sequence_sums(log_ratios, ids) if level == "sequence" else log_ratios).exp()
    return {
        "uncorrected": torch.ones_like(ratios),
        "decoupled": ratios.clamp(max=20.0),
        "truncated": ratios.clamp(max=2.0),
        "masked": torch.where(ratios > 2.0, 0.0, ratios),
        "icepop": torch.where((ratios < 0.5) | (ratios > 5.0), 0.0, ratios),
    }[kind]


@pytest.mark.parametrize(
    ("kind", "level"),
    [
        *((kind, "token") for kind in ("uncorrected", "decoupled", "truncated", "masked", "icepop")),
        ("truncated", "sequence"),
        ("masked", "sequence"),
    ],
)
@pytest.mark.parametrize("power", [0.0, 0.5])
def test_a_built_in_weight_times_the_clipped_loss_to_the_last_bit(
    kind: str, level: str, power: float
) -> None:
    tokens = batch()
    trainer = (tokens.proximal_logprobs + 0.3 * tokens.advantages.cos()).requires_grad_()
    found = corrected(tokens, trainer, kind=kind, level=level, staleness_power=power)
    again = trainer.detach().clone().requires_grad_()
    loss, stopped = clipped_surrogate(
        again, tokens.proximal_logprobs, tokens.advantages, clip_low=0.2, clip_high=0.28, dual_clip=3.0
    )
    weights = weights_by_hand(kind, tokens.proximal_logprobs - tokens.sampler_logprobs, level)
    expected = (1.0 + tokens.token_staleness.float()) ** -power * weights * loss
    assert torch.equal(found.loss, expected) and torch.equal(found.stopped, stopped)
    found.loss.sum().backward()
    expected.sum().backward()
    assert trainer.grad is not None and again.grad is not None and torch.equal(trainer.grad, again.grad)


def test_a_function_of_a_file_with_its_options(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(HALF)
    tokens = batch()
    trainer = tokens.proximal_logprobs.clone()
    kind = f"{tmp_path}/mine.py:half"
    found = corrected(tokens, trainer, kind=kind, options={"share": 0.25})
    expected = (tokens.proximal_logprobs - tokens.sampler_logprobs).exp() ** 0.25 * -tokens.advantages
    assert torch.allclose(found.loss, expected)
    assert torch.equal(found.limited, tokens.token_staleness > 3)
    config = CorrectionConfig(kind=kind)
    assert config.recomputes and not config.replaces_loss
    assert not CorrectionConfig(kind=kind, proximal="interpolated").recomputes


def test_a_function_may_have_a_loss_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN_LOSS)
    tokens, kind = batch(), f"{tmp_path}/mine.py:own"
    trainer = tokens.sampler_logprobs.clone().requires_grad_()
    found = corrected(tokens, trainer, kind=kind)
    assert torch.allclose(found.loss, -tokens.advantages / 8)
    assert CorrectionConfig(kind=kind).replaces_loss and not CorrectionConfig(kind=kind).recomputes
    with pytest.raises(ValidationError, match="is a loss itself and replaces loss=gspo"):
        AlgorithmConfig.model_validate({"loss": "gspo", "correction": {"kind": kind}})
    with pytest.raises(ValidationError, match="has no proximal policy"):
        CorrectionConfig(kind=kind, proximal="interpolated")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return proximal_logprobs", r"must return \(weights \[M\], limited \[M\] bool\), not Tensor"),
        ("return proximal_logprobs.sum(), proximal_logprobs > 0", "one number a token, .64."),
        ("return proximal_logprobs, proximal_logprobs", "must return limited as bool, not torch.float32"),
    ],
)
def test_what_is_no_weight_is_refused(tmp_path: Path, body: str, words: str) -> None:
    (tmp_path / "mine.py").write_text(f"def mine(sampler_logprobs, *, proximal_logprobs):\n    {body}\n")
    tokens = batch()
    with pytest.raises(ConfigError, match=f"algorithm.correction: .*{words}"):
        corrected(tokens, tokens.proximal_logprobs, kind=f"{tmp_path}/mine.py:mine")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "truncatd"}, "no correction is named 'truncatd'; did you mean 'truncated'?"),
        ({"kind": "truncated", "options": {"cap": 3}}, "'cap' is not one of kind's options"),
        ({"kind": "truncated", "options": {"capp": 3}}, "correction 'truncated' takes no option 'capp'"),
        ({"kind": "none", "options": {"share": 3}}, "correction 'none' takes no option 'share'"),
        ({"kind": "uncorrected", "level": "sequence"}, "set kind=truncated or masked"),
    ],
)
def test_a_key_that_would_not_be_read_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words.replace("?", r"\?")):
        CorrectionConfig.model_validate(options)


def test_a_files_function_is_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(HALF)
    monkeypatch.chdir(tmp_path)
    tree = {"model": {"path": "m"}, "data": {"train": "digit_sum"}, "rewards": "answer_exact"}
    config = parse_config(tree, overrides=["algorithm.correction.kind=./mine.py:half"])
    assert config.algorithm.correction.kind == f"{tmp_path}/mine.py:half"


def test_what_bfloat16_chooses_is_read_without_torch() -> None:
    code = (
        "import sys; from vlrl.config import parse_config\n"
        "tree = {'model': {'path': 'm', 'dtype': 'bfloat16'}, 'data': {'train': 'x'}}\n"
        "print(parse_config(tree).algorithm.correction.recomputes, 'torch' in sys.modules)"
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert child.stdout.split() == ["True", "False"], child.stderr


@pytest.mark.parametrize("name", BUILT_IN["corrections"])
def test_what_is_built_in_keeps_the_contract(name: str) -> None:
    result = check_function(name, {})
    assert result["ok"], result["checks"]


BROKEN = {
    "finite": ("return (proximal_logprobs - sampler_logprobs).exp(), sampler_logprobs > 9", "not finite"),
    "packing": (
        "w = (proximal_logprobs - sampler_logprobs).clamp(-9, 9).exp()\n    return w / w.mean(), w > 99",
        "depends on which other sequences",
    ),
    "on policy": (
        "return (proximal_logprobs - sampler_logprobs).clamp(-9, 9).exp() / 2, sampler_logprobs > 9",
        "the weight of ρ = 1 must be 1",
    ),
    "returns": ("return proximal_logprobs", "must return"),
}
"""Clause → a correction that breaks it, and what is said of it."""


@pytest.mark.parametrize("clause", BROKEN)
def test_a_correction_that_breaks_a_clause_is_told_which(clause: str, tmp_path: Path) -> None:
    body, words = BROKEN[clause]
    (tmp_path / "mine.py").write_text(f"def mine(sampler_logprobs, *, proximal_logprobs):\n    {body}\n")
    result = check_function(f"{tmp_path}/mine.py:mine", {}, "corrections")
    failed = {c["name"]: c["found"] for c in result["checks"] if c["status"] == "fail"}
    assert words in failed[clause], result["checks"]


def test_options_beside_the_kind_reach_it() -> None:
    assert check_function("truncated", {"cap": 3.0, "level": "sequence"})["ok"]
    with pytest.raises(ConfigError, match=r"icepop_low=0\.1 has no effect with kind=masked"):
        check_function("masked", {"icepop_low": 0.1})
    with pytest.raises(
        ConfigError, match="--kind rewards: contracts are there for losses, advantages, corrections"
    ):
        check_function("masked", {}, "rewards")
