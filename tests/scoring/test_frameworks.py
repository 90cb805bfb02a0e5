"""Rewards in the conventions of verl, OpenRLHF, slime, GUI-R1 and earlier EasyR1; TRL's own, installed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from builders import make_sample, make_trajectory

from vlrl.config.options import RewardConfig, ScoringConfig
from vlrl.errors import ConfigError
from vlrl.scoring.compose import ComposedReward, RewardFailure
from vlrl.scoring.functions import find_reward
from vlrl.types import Score

GUI_R1 = """
import json, re

def r1gui_compute_score(predict_str, ground_truth):
    truth = json.loads(ground_truth)
    good = re.search(r"'action': '(\\w+)'", predict_str).group(1) == truth["action"]
    form = "<answer>" in predict_str
    return {"overall": 0.8 * good + 0.2 * form, "format": float(form), "accuracy": float(good)}

def compute_score(predicts, ground_truths, format_weight=0.1):
    assert isinstance(predicts, list) and isinstance(ground_truths, list)
    right = [float(p == t) for p, t in zip(predicts, ground_truths)]
    return [{"overall": r, "format": format_weight, "accuracy": 1.0} for r in right]

def geo3k(predict_str, ground_truth, use_boxed=True, format_score=0.1):
    return (1.0 - format_score) * float(predict_str == ground_truth)
"""

VERL = """
def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    assert data_source == "geo3k" and extra_info["level"] == 3
    return {"score": float(solution_str == ground_truth), "acc": True, "pred": solution_str}

def named(data_source, solution_str, ground_truth, extra_info=None, bonus=0.0, **kwargs):
    assert extra_info == {"index": 7}
    return bonus + float(data_source == "mine")

def gsm8k(solution_str, ground_truth, method="strict"):
    return float(method == "strict")

def compute_score_batched(data_sources, solution_strs, ground_truths, extra_infos):
    assert data_sources == ["geo3k"] * len(solution_strs)
    assert [info["level"] for info in extra_infos] == [3] * len(solution_strs)
    return [float(s == t) for s, t in zip(solution_strs, ground_truths)]

async def later(data_source, solution_str, ground_truth, extra_info):
    return {"score": 0.25}

def no_score(data_source, solution_str, ground_truth, extra_info):
    return {"reward": 1.0}
"""

OPENRLHF = """
class Tensor:
    def __init__(self, values):
        self.values = values

    def tolist(self):
        return self.values

def reward_func(queries, prompts, labels, **kwargs):
    said = [q[len(p):] for q, p in zip(queries, prompts)]
    assert prompts == ["What?"] * len(queries)
    rewards = Tensor([float(s == l) for s, l in zip(said, labels)])
    return {"rewards": rewards, "scores": rewards, "extra_logs": {"length": Tensor([len(s) for s in said])}}

def without_labels(queries, prompts):
    return Tensor([0.5] * len(queries))

def scalar(queries, prompts, labels):
    return {"rewards": Tensor(0.75)}

def too_few(queries, prompts, labels):
    return [0.5] * (len(queries) - 1)

def ragged(queries, prompts, labels):
    return {"rewards": [0.5] * len(queries), "extra_logs": {"x": [1.0] * (len(queries) + 1)}}
"""

SLIME = """
async def reward_func(args, sample, **kwargs):
    assert sample.prompt == "What?" and sample.metadata == {"level": 3, "data_source": "geo3k"}
    assert sample.response_length == 2 and sample.tokens == [7, 8]
    return args.scale * float(sample.response == sample.label)

async def keyed(args, sample, **kwargs):
    return {"acc": 1.0, "score": 0.5, "text": "fine"}

async def group(args, samples, **kwargs):
    return [0.0] * len(samples)
"""

METADATA = {"level": 3, "data_source": "geo3k"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (
        ("gui_r1", GUI_R1),
        ("verl_like", VERL),
        ("openrlhf_like", OPENRLHF),
        ("slime_like", SLIME),
    ):
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def score(
    name: str, completions: list[str], answer: Any = "8", metadata: Any = None, **config: Any
) -> list[Any]:
    message = {"role": "user", "content": [{"type": "text", "text": "What?"}]}
    trajectories = []
    for completion in completions:
        sample = make_sample(answer=answer, messages=(message,), metadata=metadata or METADATA)
        trajectories.append(make_trajectory(sample, [7, 8], completion=completion))
    with ComposedReward([RewardConfig(name=name, **config)], None, ScoringConfig(), inline=True) as reward:
        return asyncio.run(reward.score_all(trajectories))


def totals(results: list[Any]) -> list[float]:
    assert all(isinstance(result, Score) for result in results), results
    return [result.total for result in results]


def test_gui_r1_and_earlier_easyr1_count_overall(folder: Path) -> None:
    """3 for a right answer, 1.5 for a wrong one: overall, format and accuracy were summed."""
    right, wrong = "<answer>[{'action': 'click'}]</answer>", "<answer>[{'action': 'type'}]</answer>"
    results = score(f"{folder}/gui_r1.py:r1gui_compute_score", [right, wrong], {"action": "click"})
    assert totals(results) == [1.0, 0.2]
    assert results[0].parts == {"r1gui_compute_score": 1.0, "format": 1.0, "accuracy": 1.0}
    batch = score(f"{folder}/gui_r1.py:compute_score", ["8", "9"], options={"format_weight": 0.5})
    assert totals(batch) == [1.0, 0.0] and batch[1].parts["format"] == 0.5
    assert totals(score(f"{folder}/gui_r1.py:geo3k", ["8", "9"])) == [0.9, 0.0]
    with pytest.raises(ConfigError, match="no option 'predict_str'"):
        find_reward(f"{folder}/gui_r1.py:geo3k", {"predict_str": "x"})


def test_a_plain_mapping_with_an_overall_is_not_summed(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def f(completion, answer):\n    return {'overall': 1.0, 'accuracy': 1.0}\n")
    (failed,) = score(f"{file}:f", ["8"])
    assert isinstance(failed, RewardFailure) and "adapter: easyr1" in failed.reason


def test_verl_functions(folder: Path) -> None:
    file = f"{folder}/verl_like.py"
    results = score(f"{file}:compute_score", ["8", "9"])
    assert totals(results) == [1.0, 0.0]
    assert results[0].parts == {"compute_score": 1.0, "acc": 1.0}  # texts are not logged
    assert totals(score(f"{file}:compute_score_batched", ["8", "9", "8"])) == [1.0, 0.0, 1.0]
    assert totals(score(f"{file}:gsm8k", ["8"], options={"method": "flexible"})) == [0.0]
    assert totals(score(f"{file}:later", ["8"])) == [0.25]
    options = {"data_source": "mine", "bonus": 0.5}
    assert totals(score(f"{file}:named", ["8"], metadata={"extra_info": {"index": 7}}, options=options)) == [
        1.5
    ]
    (failed,) = score(f"{file}:no_score", ["8"])
    assert isinstance(failed, RewardFailure) and "must have 'score'" in failed.reason


def test_openrlhf_functions(folder: Path) -> None:
    file = f"{folder}/openrlhf_like.py"
    results = score(f"{file}:reward_func", ["8", "nine"])
    assert totals(results) == [1.0, 0.0]
    assert [result.parts["length"] for result in results] == [1.0, 4.0]
    assert totals(score(f"{file}:without_labels", ["8", "9"])) == [0.5, 0.5]
    assert totals(score(f"{file}:scalar", ["8"])) == [0.75]
    assert all(isinstance(failed, RewardFailure) for failed in score(f"{file}:too_few", ["8", "9"]))
    (failed,) = score(f"{file}:ragged", ["8"])
    assert "extra_logs['x'] must have a number for each of 1 rewards" in failed.reason


def test_slime_functions(folder: Path) -> None:
    file = f"{folder}/slime_like.py"
    assert find_reward(f"{file}:reward_func").is_async
    assert totals(score(f"{file}:reward_func", ["8", "9"], options={"scale": 2.0})) == [2.0, 0.0]
    (result,) = score(f"{file}:keyed", ["8"])
    assert result.total == 0.5 and result.parts == {"keyed": 0.5, "acc": 1.0}
    assert totals(score(f"{file}:keyed", ["8"], options={"reward_key": "acc"})) == [1.0]
    with pytest.raises(ConfigError, match=r"@reward\(group=True\)"):
        find_reward(f"{file}:group")


def test_an_adapter_can_be_named_for_other_parameter_names(tmp_path: Path) -> None:
    file = tmp_path / "theirs.py"
    file.write_text(
        "def one(text, truth):\n    return {'overall': 1.0, 'accuracy': 0.0}\n\n"
        "def two(q, p, l):\n    return [float(len(l))] * len(q)\n\n"
        "def three(a, s):\n    return float(s.response == s.label)\n"
    )
    assert totals(score(f"{file}:one", ["8"], adapter="easyr1")) == [1.0]
    assert totals(score(f"{file}:two", ["8", "9"], adapter="openrlhf")) == [2.0, 2.0]
    assert totals(score(f"{file}:three", ["8", "9"], adapter="slime")) == [1.0, 0.0]
    with pytest.raises(ConfigError, match="no parameter 'solution_str'"):
        find_reward(f"{file}:one", adapter="verl")


@pytest.mark.slow
def test_trls_own_rewards_by_their_module(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The installed package's real files; accuracy_rewards imports its neighbours."""
    (site,) = (root / ".venv-trl" / "lib").glob("python*/site-packages")  # `make trl-env` makes it
    monkeypatch.setattr(sys, "path", [*sys.path, str(site)])
    good, bad = "<think>3 + 5</think>\\boxed{8}", "<think>3 + 5</think>\\boxed{9}"
    assert totals(score("trl.rewards.format_rewards:think_format_reward", [good, "8"])) == [1.0, 0.0]
    assert totals(score("trl.rewards.accuracy_rewards:accuracy_reward", [good, bad], "$8$")) == [1.0, 0.0]
    assert totals(score("trl.rewards.accuracy_rewards:reasoning_accuracy_reward", [good, bad], "$8$")) == [
        1.0,
        0.0,
    ]
