"""docs/families.md: its table is what the registry, the processors and the recorded passes say."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from vlrl.processors.auto import NOT_TRAINED

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    for name in ("slow_proofs", "families_page"):
        spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # the second imports the first; dataclasses look their module up
        spec.loader.exec_module(module)
    return module


@pytest.fixture
def ledger(tool: ModuleType) -> dict[str, object]:
    """All families of the suite that are slow, none of which has passed."""
    found = tool.read_ledger(ROOT / tool.LEDGER)
    return {proof: None for proof in found if proof.startswith(f"{tool.SUITE}[")}


def rows_of(table: str) -> dict[str, list[str]]:
    """The cells of each row by its first model type."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {row[1].split(",")[0].strip("`"): row for row in rows}


def test_the_page_is_what_the_tool_writes(tool: ModuleType) -> None:
    assert tool.current() == tool.PAGE.read_text(encoding="utf-8"), "run python tools/families_page.py"


def test_a_day_is_that_of_a_recorded_pass_and_nothing_else(
    tool: ModuleType, ledger: dict[str, object]
) -> None:
    rows = rows_of(tool.table(tool.ROWS, ledger, ["qwen3_vl_moe"]))
    assert rows["gemma4"][5] == "not run"
    assert rows["qwen3_vl"][5] == "`qwen3_vl`: not run; `qwen3_vl_moe`: in every `make test`"
    ledger[f"{tool.SUITE}[internvl]"] = sys.modules["slow_proofs"].LastPass(
        "2026-11-23T15:18:59Z", "68c6e2e", 1.0
    )
    rows = rows_of(tool.table(tool.ROWS, ledger, ["qwen3_vl_moe"]))
    assert rows["internvl"][5] == "`internvl`: 2026-11-23; `internvl3_5`, `internvl3_5_moe`: not run"
    assert rows["gemma4"][5] == "not run"


def test_video_and_audio_are_what_the_processors_take(tool: ModuleType, ledger: dict[str, object]) -> None:
    rows = rows_of(tool.table(tool.ROWS, ledger, ["qwen3_vl_moe"]))
    assert rows["qwen2_vl"][3] == "yes" and rows["smolvlm"][3] == "no: give frames as images"
    assert [name for name, row in rows.items() if row[4] == "yes"] == ["qwen2_5_omni", "gemma4"]
    wrong = [
        tool.Row("Smol", row.types, video="too") if row.types == ("smolvlm",) else row for row in tool.ROWS
    ]
    with pytest.raises(SystemExit, match="Smol: its processors do not take video"):
        tool.table(wrong, ledger, ["qwen3_vl_moe"])


def test_a_family_that_is_forgotten_is_named(tool: ModuleType, ledger: dict[str, object]) -> None:
    with pytest.raises(SystemExit, match="processors differ: gemma4"):
        tool.table(tool.ROWS[:-1], ledger, ["qwen3_vl_moe"])
    with pytest.raises(SystemExit, match=r"test_families_engines\.py differ: qwen3_vl_moe"):
        tool.table(tool.ROWS, ledger, [])


def test_what_is_refused_by_name_is_on_the_page(tool: ModuleType) -> None:
    refused = tool.PAGE.read_text(encoding="utf-8").split("## Refused by name")[1].split("\n## ")[0]
    assert all(f"`{name}`" in refused for name in NOT_TRAINED)
