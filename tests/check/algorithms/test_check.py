"""What is built in keeps the contract of a loss, and each clause finds the loss that breaks it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vlrl.check.algorithms.check import CLAUSES, check_loss, verdict
from vlrl.errors import ConfigError
from vlrl.registry import BUILT_IN

BROKEN = {
    "returns": (
        "return (-advantages * trainer).mean(), advantages > 9",
        "must return one number a token, [15], and returned [] and [15]",
    ),
    "returns ": (
        "loss = -advantages * trainer / trainer.max()\n    return loss, advantages > 9",
        "raises RuntimeError",  # there is no largest of none
    ),
    "returns  ": (
        "advantages.neg_()\n    return advantages * trainer, advantages > 9",
        "changes its arguments in place",
    ),
    "finite": (
        "return -advantages * (trainer - anchor).exp(), advantages > 9",
        "the loss is not finite where log π_θ - log π_anchor = 200",
    ),
    "gradient": (
        "ratio = (sums(trainer - anchor) / sums(torch.ones_like(trainer))).clamp(-9, 9).exp()\n"
        "    return -advantages * ratio, advantages > 9",
        "the loss has no gradient",
    ),
    "gradient ": (
        "ratio = (trainer - anchor).clamp(-9, 9).exp()\n"
        "    return -advantages * ratio * (1 + sums(trainer - anchor).clamp(-1, 1)), advantages > 9",
        "difference quotients say",
    ),
    "zero advantages": (
        "return -advantages * trainer + 0.01 * (trainer - anchor).clamp(-9, 9) ** 2, advantages > 9",
        "where all advantages are 0",
    ),
    "order": (
        "place = torch.linspace(1, 2, len(trainer), dtype=trainer.dtype)\n"
        "    return -advantages * trainer * place, advantages > 9",
        "depends on the order of the sequences",
    ),
    "packing": (
        "scale = advantages.abs().sum() + 1\n    return -advantages * trainer / scale, advantages > 9",
        "depends on which other sequences are in its micro-batch",
    ),
    "slices": (
        "return -advantages * trainer / (1 + len(trainer)), advantages > 9",
        "depends on how its sequence is cut into slices",
    ),
    "slices ": (
        "if len(trainer) > 9:\n        sums(advantages)\n    return -advantages * trainer, advantages > 9",
        "asks for more sequence_sums on one slice than on the other",
    ),
}
"""Clause, told apart by spaces → a loss that breaks it, and what is said of it."""


@pytest.mark.parametrize("name", BUILT_IN["losses"])
def test_what_is_built_in_keeps_the_contract(name: str) -> None:
    result = check_loss(name, {})
    assert result["ok"], result["checks"]
    assert [check["name"] for check in result["checks"]] == list(CLAUSES)
    assert verdict(result) == "keeps the contract"


def test_options_are_those_of_a_config() -> None:
    assert check_loss("gspo", {"low": 0.2, "high": 0.3})["ok"]
    assert check_loss("ppo", {"clip_low": 0.1, "dual_clip": None})["ok"]
    with pytest.raises(ConfigError, match="loss 'gspo' takes no option 'hgih'"):
        check_loss("gspo", {"hgih": 0.3})
    with pytest.raises(ConfigError, match=r"clip_low=0\.1 has no effect with loss=sapo"):
        check_loss("sapo", {"clip_low": 0.1})
    with pytest.raises(ConfigError, match="did you mean 'sapo'"):
        check_loss("sap", {})


@pytest.mark.parametrize("clause", BROKEN)
def test_a_loss_that_breaks_a_clause_is_told_which(clause: str, tmp_path: Path) -> None:
    body, words = BROKEN[clause]
    file = tmp_path / "mine.py"
    file.write_text(
        "import torch\n\n"
        "def mine(trainer, anchor, advantages, *, sequence_sums):\n"
        f"    sums = sequence_sums\n    {body}\n"
    )
    result = check_loss(f"{file}:mine", {})
    failed: dict[str, Any] = {c["name"]: c["found"] for c in result["checks"] if c["status"] == "fail"}
    assert words in failed[clause.strip()], result["checks"]
    assert not result["ok"] and clause.strip() in verdict(result)


def test_a_loss_that_raises_is_told_where(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def mine(trainer, anchor, advantages):\n    return 1 / 0\n")
    (only,) = check_loss(f"{file}:mine", {})["checks"]
    assert only["found"] == f"raises ZeroDivisionError: division by zero ({file}, line 2)"
