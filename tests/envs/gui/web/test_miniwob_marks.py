"""What counts as success in MiniWoB++: not what is paid to whoever presses Submit at once."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from vlrl.envs.gui.web.miniwob.marks import FULL_MARKS, MARKS, is_solved
from vlrl.envs.gui.web.miniwob.pages import MiniWob, task_names

ROOT = Path(__file__).resolve().parents[4]
PARTIAL = ("use-colorwheel", "use-colorwheel-2", "click-checkboxes-transfer", "click-checkboxes-soft")


@pytest.fixture(scope="module")
def nulls() -> ModuleType:
    spec = importlib.util.spec_from_file_location("miniwob_nulls", ROOT / "benchmarks" / "miniwob_nulls.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def world() -> Iterator[MiniWob]:
    backend = MiniWob()
    yield backend
    backend.close()


@pytest.mark.parametrize("name", PARTIAL)
def test_who_submits_at_once_has_not_succeeded(name: str, nulls: ModuleType, world: MiniWob) -> None:
    paid = 0
    for seed in range(8):
        success, reward = nulls.episode(world, name, nulls.submit, seed)
        paid += reward > 0
        assert success == ("Select nothing" in world.goal), seed
    assert paid, "this page pays whoever submits at once"


def test_a_threshold_is_reached_or_not() -> None:
    assert is_solved("click-button", 1.0) and not is_solved("click-button", 0.99)
    assert is_solved("draw-line", 0.8 + 0.2 - 1e-9)
    assert is_solved("use-colorwheel", 0.95) and not is_solved("use-colorwheel", 0.94)
    assert set(MARKS) <= set(task_names())
    assert all(0.5 < mark < FULL_MARKS for mark in MARKS.values())


def test_the_docs_have_the_table_of_these_thresholds(nulls: ModuleType) -> None:
    text = (ROOT / "docs" / "gui_web.md").read_text(encoding="utf-8")
    written = text.split(nulls.BEGIN)[1].split(nulls.END)[0]
    rows = re.findall(r"^\| ([\w-]+) \| ([\d.]+) \|", written, re.MULTILINE)
    shown = {name: float(mark) for name, mark in rows}
    assert {name: shown[name] for name in MARKS} == MARKS
    assert {mark for name, mark in shown.items() if name not in MARKS} == {FULL_MARKS}
    assert shown.keys() <= set(task_names())
