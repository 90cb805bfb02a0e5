"""Episodes as rows of a dataset, read as a run reads them."""

from __future__ import annotations

import gc
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile_envs import FILE

from vlrl.config.data import DatasetConfig
from vlrl.data import open_dataset
from vlrl.envs.tasks import EnvTasks
from vlrl.errors import ConfigError, DataError
from vlrl.protocols import Observation, StepResult
from vlrl.registry import resolve

ODD = str(Path(__file__).parents[2] / "examples" / "odd_one_out.py") + ":OddOneOut"
HERE = __file__


class Corridor:
    """Walk `length` steps to the right; async, with a tool, without instructions."""

    tools = ({"type": "function", "function": {"name": "look", "parameters": {}}},)
    num_open = 0

    def __init__(self, length: int = 3, solvable: bool = True) -> None:
        self.length, self.solvable = length, solvable
        type(self).num_open += 1
        self._is_open = True

    async def reset(self, task: Any, seed: int) -> Observation:
        self.place, self.length = 0, task.get("length", self.length)
        return Observation(f"{seed}: at 0 of {self.length}")

    async def step(self, action: str) -> StepResult:
        self.place += action == "right"
        done = self.place == self.length
        return StepResult(
            Observation(f"at {self.place}", role="tool"),
            float(done),
            done,
            False,
            {"success": done and self.solvable},
        )

    def oracle(self) -> str:
        return "right"

    async def close(self) -> None:
        type(self).num_open -= self._is_open
        self._is_open = False


class Mute(Corridor):
    oracle = None  # type: ignore[assignment]


class Crowd(Corridor):
    agents = ("a", "b")
    oracle = None  # type: ignore[assignment]


def pixels(row: Any) -> Any:
    return np.asarray(row["messages"][1]["content"][0]["image"])


def test_a_row_is_the_task_and_what_is_seen_first() -> None:
    row = EnvTasks(ODD, {"cells": 3}, num_rows=5, tasks=[{}])[4]
    assert row["id"] == f"{ODD}/train/4"
    assert [message["role"] for message in row["messages"]] == ["system", "user"]
    assert [part["type"] for part in row["messages"][1]["content"]] == ["image", "text"]
    assert row["env"]["name"] == ODD
    assert row["env"]["options"] == {"cells": 3}
    assert (row["env"]["task"], row["answer"]) == ({}, None)
    assert "target" not in row
    assert "tools" not in row


def test_rows_hang_on_their_number_and_the_seed_alone() -> None:
    rows = EnvTasks(ODD, num_rows=8)
    again = pickle.loads(pickle.dumps(EnvTasks(ODD, num_rows=8)))
    np.testing.assert_array_equal(pixels(rows[3]), pixels(again[3]))
    assert len({pixels(rows[i]).tobytes() for i in range(8)}) == 8
    assert EnvTasks(ODD, num_rows=8, seed=1).episode_seed(3) != rows.episode_seed(3)


def test_the_splits_share_no_seed() -> None:
    train = EnvTasks(ODD, num_rows=100)
    heldout = EnvTasks(ODD, num_rows=100, split="heldout", seed=9)
    assert {train.episode_seed(i) % 2 for i in range(100)} == {0}
    assert {heldout.episode_seed(i) % 2 for i in range(100)} == {1}
    assert heldout[0]["id"].endswith("/heldout/0")


def test_tasks_are_given_in_turn() -> None:
    rows = EnvTasks(f"{HERE}:Corridor", num_rows=5, tasks=[{"length": 2}, {"length": 4}])
    texts = [rows[i]["messages"][0]["content"][0]["text"].partition(": ")[2] for i in range(5)]
    assert texts == ["at 0 of 2", "at 0 of 4"] * 2 + ["at 0 of 2"]
    assert rows[1]["env"]["task"] == {"length": 4}
    assert rows[0]["tools"] == [{"type": "function", "function": {"name": "look", "parameters": {}}}]


def test_a_demonstration_is_the_whole_episode() -> None:
    row = EnvTasks(f"{HERE}:Corridor", {"length": 3}, demonstrations=True)[0]
    said = [
        (m["role"], m["content"][0]["text"].partition(": ")[2] or m["content"][0]["text"])
        for m in row["messages"]
    ]
    assert said == [
        ("user", "at 0 of 3"),
        ("assistant", "right"),
        ("tool", "at 1"),
        ("assistant", "right"),
        ("tool", "at 2"),
    ]
    assert row["target"] == "right"


def test_a_run_reads_the_rows_whole(tmp_path: Path) -> None:
    options = {"env": f"{HERE}:Corridor", "num_rows": 3, "demonstrations": True}
    (row, *_) = open_dataset(DatasetConfig(name="env", options=options), "data.train")
    assert row["env"]["name"] == f"{HERE}:Corridor"
    assert row["tools"][0]["function"]["name"] == "look"
    assert row["target"] == "right"
    assert [message["role"] for message in row["messages"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]


@pytest.mark.parametrize(
    ("env", "options", "words"),
    [
        (ODD, {"split": "test"}, "split='test' is not one of train, heldout"),
        (ODD, {"num_rows": 0}, "must be at least 1"),
        (ODD, {"tasks": []}, "must be a list of one or more mappings"),
        (ODD, {"tasks": {"level": 1}}, "must be a list of one or more mappings"),
        (ODD, {"options": {"cells": 99}}, "cells=99 must be from 2 to 12"),
        (ODD, {"options": {"cell": 3}}, "does not take the options"),
        ("visual/countin", {}, "no env is named 'visual/countin'"),
        (f"{HERE}:Mute", {"demonstrations": True}, "no oracle"),
        (f"{HERE}:Crowd", {"demonstrations": True}, "no oracle"),
    ],
)
def test_what_cannot_be_is_said_at_once(env: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        EnvTasks(env, **options)


@pytest.mark.parametrize(
    ("options", "words"), [({"length": 9}, "after 4 turns"), ({"solvable": False}, "without success")]
)
def test_a_demonstration_that_fails_names_its_row(options: dict[str, Any], words: str) -> None:
    rows = EnvTasks(f"{HERE}:Corridor", options, demonstrations=True, max_turns=4)
    with pytest.raises(DataError, match=f"Corridor/train/7.*{words}"):
        rows[7]


def test_a_row_of_several_agents_names_them() -> None:
    row = EnvTasks(f"{HERE}:Crowd")[0]
    assert row["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Played by a, b."}]}]
    assert row["env"]["name"] == f"{HERE}:Crowd"


def test_rows_are_read_from_one_environment_a_thread_that_is_closed_with_the_dataset() -> None:
    corridor = resolve("envs", f"{HERE}:Corridor")
    before = corridor.num_open
    rows = EnvTasks(f"{HERE}:Corridor", {"length": 9})
    both = threading.Barrier(2)

    def read(rows: EnvTasks, number: int) -> None:
        both.wait()
        assert rows[number]["env"]["name"] == f"{HERE}:Corridor"

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(read, [rows] * 16, range(16)))
    assert 2 <= corridor.num_open - before <= 3, "this thread's, which looked for agents, and two more"
    del rows
    gc.collect()
    assert corridor.num_open == before


def test_an_environment_whose_demonstration_failed_is_closed() -> None:
    corridor = resolve("envs", f"{HERE}:Corridor")
    before = corridor.num_open
    rows = EnvTasks(f"{HERE}:Corridor", {"length": 9}, demonstrations=True, max_turns=2)
    with pytest.raises(DataError):
        rows[0]
    assert corridor.num_open == before


@pytest.mark.parametrize("kind", ["array", "pil"])
def test_an_image_stays_as_it_was_when_the_next_row_is_read(kind: str) -> None:
    rows = EnvTasks(f"{FILE}:Images", {"kind": kind}, num_rows=2)
    rows.episode_seed = lambda index: index + 1  # type: ignore[method-assign]
    shown = [row["messages"][0]["content"][0]["image"] for row in (rows[0], rows[1])]
    assert [np.asarray(image).max() for image in shown] == [1, 2]


def test_a_row_says_what_its_seed_drew() -> None:
    rows = EnvTasks("gui/emu", {"tasks": "mail/*", "difficulty": [2, 3]}, num_rows=6)
    drawn = [rows[index]["metadata"] for index in range(6)]
    assert all(one["task"].startswith("mail/") and one["level"] in (2, 3) for one in drawn)
    assert len({one["task"] for one in drawn}) > 1
