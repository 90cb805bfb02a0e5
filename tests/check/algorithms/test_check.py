"""What is built in keeps the contract of a loss, and each clause finds the loss that breaks it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vlrl.check.algorithms.check import CLAUSES, check_loss, verdict
from vlrl.check.algorithms.kinds import check_function
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


ADVANTAGES = {
    "numbers": ("[t.score.total / 0.0 if t.score.total == 1 else 0.0 for t in group]", "ZeroDivisionError"),
    "numbers ": ("[(t.score.total - m) / np.std([u.score.total for u in group]) for t in group]", "finite"),
    "numbers  ": ("[0.0]", "returned 1 advantages for 2 trajectories"),
    "numbers   ": ("[setattr(t, 'score', None) or 0.0 for t in group]", "changes the episodes in place"),
    "members": ("[t.score.total - group[0].score.total for t in group]", "depends on the order"),
    "repeats": ("[t.score.total * next(COUNT) for t in group]", "two calls with the same episodes differ"),
}
"""Clause, told apart by spaces → an advantage that breaks it, and what is said of it."""


@pytest.mark.parametrize("name", BUILT_IN["advantages"])
def test_built_in_advantages_keep_theirs(name: str) -> None:
    result = check_function(name, {"rewards": {"speed": 2.0}} if name == "gdpo" else {})
    clauses = ["steps", "repeats"] if name == "gae" else ["numbers", "members", "repeats"]
    assert result["ok"] and [check["name"] for check in result["checks"]] == clauses


@pytest.mark.parametrize("clause", ADVANTAGES)
def test_an_advantage_that_breaks_a_clause_is_told_which(clause: str, tmp_path: Path) -> None:
    body, words = ADVANTAGES[clause]
    file = tmp_path / "mine.py"
    file.write_text(
        "from itertools import count\nimport numpy as np\nCOUNT = count()\n\n"
        "def mine(group):\n    m = np.mean([t.score.total for t in group])\n"
        f"    with np.errstate(all='ignore'):\n        return {body}\n"
    )
    result = check_function(f"{file}:mine", {}, "advantages")
    failed = {c["name"]: c["found"] for c in result["checks"] if c["status"] == "fail"}
    assert words in failed[clause.strip()], result["checks"]


@pytest.mark.parametrize(
    ("body", "clause", "words"),
    [
        ("return rewards[1:]", "steps", "a finite advantage for each"),
        ("return rewards + float('inf')", "steps", "a finite advantage for each"),
        ("values -= rewards\n    return rewards", "steps", "changes the values"),
        ("return rewards + next(COUNT)", "repeats", "two calls"),
    ],
)
def test_an_advantage_of_values_that_breaks_a_clause_is_told_which(
    body: str, clause: str, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        f"from itertools import count\nCOUNT = count()\n\ndef mine(rewards, values):\n    {body}\n"
    )
    result = check_function(f"{file}:mine", {}, "advantages")
    failed = {c["name"]: c["found"] for c in result["checks"] if c["status"] == "fail"}
    assert words in failed[clause], result["checks"]


def test_an_advantage_of_a_file_may_ask_for_a_greedy_episode(tmp_path: Path) -> None:
    """It is then given one member too; a group's own baseline would not be defined there."""
    file = tmp_path / "mine.py"
    file.write_text(
        "def against(group, *, greedy):\n    return [t.score.total - greedy.score.total for t in group]\n"
        "def spread(group, *, greedy):\n"
        "    return [greedy.score.total / (len(group) - 1) for t in group]\n"
    )
    assert check_function(f"{file}:against", {}, "advantages")["ok"]
    (only,) = check_function(f"{file}:spread", {}, "advantages")["checks"]
    assert "ZeroDivisionError" in only["found"]
