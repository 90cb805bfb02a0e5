"""`vlrl env list|check|bench` as a person runs them; `play` is tried in tests/env_play."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vlrl.envs.gui.grounding import GuiGrounding
from vlrl.envs.gui.screenspot import ScreenSpot
from vlrl.registry import BUILT_IN

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "odd_one_out.py") + ":OddOneOut"
FAULTY = str(Path(__file__).parents[1] / "check" / "envs" / "faulty_envs.py")


def test_everything_registered_is_listed(vlrl: Any) -> None:
    rows = {row["name"]: row for row in vlrl("env", "list", "--json").json["envs"]}
    assert set(rows) >= set(BUILT_IN["envs"])
    assert not [row for row in rows.values() if "problem" in row]
    assert all(row["purpose"] for row in rows.values())
    kinds = {name: row["kind"] for name, row in rows.items()}
    assert (kinds["visual/counting"], kinds["visual/mazes"]) == ("question", "multi-step")
    assert (kinds["gymnasium"], kinds["tools"]) == ("adapter", "tools")
    assert rows["visual/mazes"]["options"]["level"] == "1"
    text = vlrl("env", "list").out
    assert all(name in text for name in BUILT_IN["envs"])


def test_one_that_cannot_be_imported_says_why(vlrl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = {**BUILT_IN, "envs": {"gone": "no_such_package.envs:Gone"}}
    monkeypatch.setattr("vlrl.registry.lookup.BUILT_IN", table)
    monkeypatch.setattr("vlrl.check.catalog.envs.BUILT_IN", table)
    (row,) = vlrl("env", "list", "--json").json["envs"]
    assert "no_such_package" in row["problem"]
    assert "no_such_package" in vlrl("env", "list").out


def test_a_good_environment_is_exit_code_0(vlrl: Any) -> None:
    result = vlrl("env", "check", EXAMPLE, "cells=3", "contrast=90", "--episodes", "4", "--json")
    assert result.code == 0
    assert result.json["ok"]
    assert result.json["options"] == {"cells": 3, "contrast": 90}
    assert "✓ keeps the contract" in result.err


def test_gymnasiums_own_checker_is_asked(vlrl: Any) -> None:
    result = vlrl("env", "check", "gymnasium", "id=CartPole-v1", "--episodes", "3", "--json")
    assert result.code == 0, result.err
    checks = {check["name"]: check for check in result.json["checks"]}
    assert checks["its library's checker"]["status"] == "warn"
    assert any("observation space" in finding for finding in checks["its library's checker"]["findings"])


def test_a_broken_one_is_exit_code_1(vlrl: Any) -> None:
    result = vlrl("env", "check", f"{FAULTY}:ReturnsTwo")
    assert result.code == 1
    assert "✗ breaks the contract: reset" in result.out
    assert "it is a tuple" in result.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("check", "visual/maze"), "did you mean 'visual/mazes'?"),
        (("check", EXAMPLE, "cells"), "option 'cells' must be key=value"),
        (("check", EXAMPLE, "cells=99"), "cells=99 must be from 2 to 12"),
        (("check", EXAMPLE, "--task", "level=1"), "unknown task key 'level'"),
        (("bench", EXAMPLE, "--option", "cells=[1"), "not valid YAML"),
        (("bench", "visual/maze"), "did you mean 'visual/mazes'?"),
        (("play", EXAMPLE, "cells=0"), "cells=0 must be from 2 to 12"),
        (("bench",), "Missing argument"),
    ],
)
def test_a_wrong_name_or_option_is_exit_code_2(vlrl: Any, arguments: tuple[str, ...], words: str) -> None:
    result = vlrl("env", *arguments)
    assert result.code == 2
    assert words in result.out + result.err


def test_screens_are_written_once_as_a_set_that_can_be_read(vlrl: Any) -> None:
    given = (
        "env",
        "screens",
        "gui/emu",
        "theme=dusk",
        "--num",
        "3",
        "--split",
        "train",
        "--out",
        "set",
        "--json",
    )
    result = vlrl(*given)
    assert result.code == 0, result.err
    told = result.json
    rows = ScreenSpot(told["path"], told["images"])
    made = GuiGrounding(options={"theme": "dusk"}, num_rows=3)
    assert [rows[n]["answer"] for n in range(3)] == [made[n]["answer"] for n in range(3)]
    assert vlrl(*given).code == 2
    assert vlrl("env", "screens", "visual/mazes").code == 2


def test_bench(vlrl: Any) -> None:
    result = vlrl("env", "bench", EXAMPLE, "visual/mazes", "--seconds", "0.05", "--json")
    assert result.code == 0
    rows = result.json["envs"]
    assert [row["env"] for row in rows] == [EXAMPLE, "visual/mazes"]
    assert all(row["steps_per_second"] > 0 and row["resets_per_second"] > 0 for row in rows)
    assert all(row["step_ms_p50"] <= row["step_ms_p99"] for row in rows)
    one = vlrl("env", "bench", EXAMPLE, "--option", "image_size=96", "--seconds", "0.05", "--json").json
    assert one["steps_per_second"] > 0
    assert one["observation"] == ["96×96"]
    assert "steps/s" in vlrl("env", "bench", EXAMPLE, "--seconds", "0.05").out
