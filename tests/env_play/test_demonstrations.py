"""`vlrl env demos`: an oracle's episodes as rows to train on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from vlrl.cli.app import run as vlrl
from vlrl.env_play.demonstrations import demonstrate
from vlrl.env_play.replay import replay_all
from vlrl.errors import ConfigError
from vlrl.registry import resolve

LIGHTS = {"tasks": "buttons/lights", "difficulty": 1}


def rows_of(folder: Path) -> list[dict]:  # type: ignore[type-arg]
    return [json.loads(line) for line in (folder / "episodes.jsonl").read_text().splitlines()]


def test_they_are_successful_episodes_of_the_dataset_s_seeds_and_play_again(tmp_path: Path) -> None:
    told: list[int] = []
    result = demonstrate("gui/emu", LIGHTS, {}, num=4, folder=tmp_path, on_episode=told.append)
    rows = rows_of(tmp_path)
    assert result["num_rows"] == result["num_added"] == len(rows) == 4 and told == [1, 2, 3, 4]
    assert result["not_added"] == {} and result["num_turns"] == sum(r["metadata"]["num_turns"] for r in rows)
    env_rows = resolve("datasets", "env")("gui/emu", LIGHTS, num_rows=4, tasks=[{}])
    assert [row["env"]["seed"] for row in rows] == [env_rows.episode_seed(index) for index in range(4)]
    assert all(row["metadata"]["success"] for row in rows)
    replayed = replay_all(tmp_path)
    assert replayed["ok"] and replayed["num_episodes"] == 4


def test_more_are_added_and_the_same_are_not(tmp_path: Path) -> None:
    demonstrate("gui/emu", LIGHTS, {}, num=2, folder=tmp_path)
    again = demonstrate("gui/emu", LIGHTS, {}, num=2, folder=tmp_path)
    assert again["num_rows"] == 4 and again["not_added"] == {"is in the file": 2}
    heldout = demonstrate("gui/emu", LIGHTS, {}, num=2, folder=tmp_path, split="heldout")
    assert heldout["num_rows"] == 6 and heldout["not_added"] == {}
    seeds = [row["env"]["seed"] for row in rows_of(tmp_path)]
    assert [seed % 2 for seed in seeds] == [0, 0, 0, 0, 1, 1]


def test_what_has_no_oracle_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match=r"it has no oracle; play it yourself with vlrl env play"):
        demonstrate(f"{Path(__file__).parent}/silent_env.py:Silent", {}, {}, num=1, folder=tmp_path)
    with pytest.raises(ConfigError, match=r"none of 4 episodes is a demonstration: .*turns"):
        demonstrate("gui/emu", LIGHTS, {}, num=1, folder=tmp_path, max_turns=1)
    command = ["env", "demos", "gui/emu", "tasks=buttons/lights", "--num", "2", "--out", str(tmp_path)]
    assert vlrl(command) == 0
    assert "2 episodes of " in capsys.readouterr().out
    assert vlrl(["env", "demos", "gui/emu", "--split", "test", "--out", str(tmp_path)]) == 2
    assert "split='test' is not one of train, heldout" in capsys.readouterr().err
