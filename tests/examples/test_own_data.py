"""examples/own_data.py runs as it stands, with its own reward file."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.mark.slow
def test_it_trains_on_its_rows_with_its_reward(tmp_path: Path, local_ray: None) -> None:
    spec = importlib.util.spec_from_file_location("own_data", EXAMPLES / "own_data.py")
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.main(tmp_path, num_steps=2)
    steps = [json.loads(line) for line in (tmp_path / "grpo" / "metrics.jsonl").read_text().splitlines()]
    assert len(steps) == 2
    assert any({"reward/sum", "reward/reading"} <= step.keys() for step in steps)
    assert any("reward_by_source/rows.jsonl" in step for step in steps)
    assert all(step["data/num_dropped_overlong"] == 0 for step in steps)


@pytest.mark.parametrize(
    ("completion", "reward"),
    [
        ("<think>3+5</think><answer>8</answer>", 1.5),
        ("<think>3+5</think><answer>9</answer>", 0.5),
        ("<think>4+4</think><answer>8</answer>", 1.0),
        ("8", 0.0),
    ],
)
def test_its_reward(completion: str, reward: float) -> None:
    from vlrl.registry import resolve

    close_sum = resolve("rewards", f"{EXAMPLES / 'reward.py'}:close_sum")
    assert sum(close_sum(completion, "8", digits=[3, 5]).values()) == reward
