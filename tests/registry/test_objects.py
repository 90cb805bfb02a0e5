"""Functions and classes where a config has names: the same in this process, found again in any other."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from builders import make_config, make_sample, make_trajectory

from vlrl.config import Config, load_config, parse_config
from vlrl.config.options import RewardConfig, ScoringConfig
from vlrl.data import open_dataset
from vlrl.errors import ConfigError
from vlrl.registry import resolve
from vlrl.registry.objects import find, name_of
from vlrl.rewards.text.exact import answer_exact
from vlrl.scoring.compose import ComposedReward


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("vlrl.registry.objects._given", {})
    yield tmp_path / "cache" / "vlrl" / "objects"


class Rows:
    """A dataset written in a notebook."""

    def __init__(self, size: int = 3) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": f"{index}?"}], "answer": str(index)}


def make_reward() -> Any:
    known = {"two": "2"}

    def spelled(completion: str, answer: str) -> float:
        """A closure: there is no module that it could be imported from."""
        return float(known.get(completion, completion) == answer)

    return spelled


def test_every_place_of_a_name_takes_an_object() -> None:
    reward, keep = make_reward(), lambda group: True
    tree: dict[str, Any] = {
        "model": {"path": "m"},
        "data": {
            "train": [{"name": Rows, "options": {"size": 2}, "rewards": [reward]}, Rows],
            "eval": {"name": "env", "options": {"name": Rows}},
        },
        "rewards": [reward, {"name": answer_exact, "weight": 0.5}],
        "algorithm": {"masks": [keep]},
        "batch": {"filters": [keep]},
    }
    config = parse_config(tree)
    assert resolve("rewards", config.rewards[0].name) is reward
    assert resolve("rewards", config.rewards[1].name) is answer_exact
    assert resolve("rewards", config.data.train[0].rewards[0].name) is reward
    assert resolve("masks", config.algorithm.masks[0]) is keep
    assert resolve("filters", config.batch.filters[0].name) is keep
    assert resolve("envs", config.data.eval[0].options["name"]) is Rows
    for source, size in zip(config.data.train, (2, 3), strict=True):
        assert len(open_dataset(source, "data.train")) == size
    assert parse_config({**tree, "rewards": reward}).rewards == [RewardConfig(name=reward)]
    assert resolve("rewards", RewardConfig(name=reward).name) is reward
    assert Config(**tree).rewards == config.rewards


def test_a_config_with_objects_is_written_and_read_again(tmp_path: Path) -> None:
    config = make_config(rewards=[make_reward()])
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config.model_dump(mode="json")))
    assert load_config(path) == config
    assert name_of(make_reward()) == config.rewards[0].name, "the same content has the same name"


def test_another_process_finds_it(tmp_path: Path) -> None:
    script = tmp_path / "notebook.py"
    script.write_text(
        "import sys\nfrom vlrl.registry.objects import name_of\n"
        "def score(completion, answer):\n    return helper(completion) == answer\n"
        "def helper(text):\n    return text.strip()\n"
        "print(name_of(score))\n"
    )
    name = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout.strip()
    assert name.endswith(".pkl:score")
    assert find(name)(" 2 ", "2") is True


def test_the_pools_workers_call_it() -> None:
    trajectories = [
        make_trajectory(make_sample(answer="2"), [5], completion=said) for said in ("two", "2", "3")
    ]
    scoring = ScoringConfig(num_workers=1)
    with ComposedReward([RewardConfig(name=make_reward())], scoring=scoring) as reward:
        scores = asyncio.run(reward.score_all(trajectories))
    assert [getattr(score, "total", score) for score in scores] == [1.0, 1.0, 0.0]
    assert reward.first_part("") == "spelled"


def test_what_cannot_be_sent_is_refused_by_name() -> None:
    lock = threading.Lock()

    def locked(completion: str) -> float:
        with lock:
            return 0.0

    with pytest.raises(
        ConfigError, match=r"locked cannot be sent to other processes .*\./file\.py:attribute"
    ):
        name_of(locked)


def test_what_is_not_kept_here_is_said(cache: Path) -> None:
    name = name_of(make_reward())
    for file in cache.iterdir():
        file.unlink()
    assert find(name) is not None, "this process was given it"
    with pytest.raises(ConfigError, match="given as a Python object, which is not kept here"):
        find(f"{cache}/gone.pkl:score")
