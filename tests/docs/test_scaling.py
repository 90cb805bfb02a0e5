"""docs/scaling.md: its tables are what its commands print, and its sentences what the tables say."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from vlrl.plan.rates import LAYER, MATMUL, MEMORY_READ, REACHED, WORKER_IMAGE, WORKER_TURN
from vlrl.plan.step_time import PARTS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("scaling_page", ROOT / "tools" / "scaling_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def numbers(row: list[str]) -> list[float]:
    return [float(cell.strip("* s").replace(",", "")) for cell in row]


def rows_of(title: str, first: str) -> list[list[str]]:
    """Cells of the rows of a section that begin like this."""
    lines = [line for line in section(title).splitlines() if line.startswith(f"| {first}")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_table_is_what_its_commands_print(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    asked: list[str] = []

    def planned(command: str) -> dict[str, object]:
        asked.append(command)
        return dict(tool.plan(command))

    assert tool.rewritten(PAGE, planned) == PAGE, (
        "rates or formulas have changed: python tools/scaling_page.py"
    )
    assert len(asked) == 4 + 4 + 10
    assert all(f"    vlrl {command}\n" in PAGE for command in asked)


def test_a_wrong_figure_is_found(tool: ModuleType) -> None:
    """The page is compared with what is planned, not with itself."""
    found = {"num_gpus": 3, "step": {**dict.fromkeys(PARTS, 1.0), "total": 7.0, "bottleneck": "media"}}
    row = f"| 3 |{' 1.0 |' * len(PARTS)} **7.0** | media, 14% |"
    assert row in tool.rewritten(PAGE, lambda _: found)


def test_the_sentences_about_the_tables_hold() -> None:
    names = (*PARTS, "step")
    rows = rows_of("From 1 to 512 GPUs", "")[1:5]
    one, eight, many, most = (dict(zip(names, numbers(row[1:9]), strict=True)) for row in rows)
    assert one["generation"] == pytest.approx(one["training"], rel=0.1)
    assert eight["workers"] == many["workers"] == most["workers"]
    assert many["media"] - eight["media"] == pytest.approx(1, abs=0.1)  # on eight nodes most is pushed
    assert most["media"] < 1.1 * many["media"]
    assert many["driver"] / many["step"] == pytest.approx(1 / 75, abs=0.001)
    assert most["packing"] / most["step"] == pytest.approx(1 / 6, abs=0.01)
    turn_ms = 1e3 * (WORKER_TURN.value + 1.024 * WORKER_IMAGE.value)
    text_ms, image_ms = (float(ms) for ms in re.findall(r"([\d.]+) ms", section("Rates"))[:2])
    assert turn_ms == pytest.approx(text_ms + 1.024 * image_ms, rel=0.03)


def test_the_sentences_about_published_figures_hold() -> None:
    areal = [numbers(row[1:]) for row in rows_of("Against published figures", "AReaL")]
    ratios = [ratio for _, _, ratio in areal]
    assert (round(min(ratios), 1), round(max(ratios), 1)) == (1.2, 2.3)
    small, small_async, large, large_async = areal
    assert [round(small[n] / small_async[n], 1) for n in (0, 1)] == [2.8, 1.9]
    assert [round(large[n] / large_async[n], 1) for n in (0, 1)] == [2.3, 1.8]
    easyr1 = [numbers(row[1:])[2] for row in rows_of("Against published figures", "EasyR1")]
    assert easyr1 == sorted(easyr1)
    share_of_peak = MATMUL["cuda"].value * REACHED["cuda"].value / 989e12
    assert share_of_peak == pytest.approx(0.26, abs=0.005)


@pytest.mark.parametrize(
    ("num_bytes", "gpus", "layers", "ms"), [(16.06e9, 1, 32, 6.5), (141.1e9, 4, 80, 16.2)]
)
def test_decoding_meets_vllms_published_latencies(
    num_bytes: float, gpus: int, layers: int, ms: float
) -> None:
    """llama-3.1 8B and llama-3 70B in bfloat16 on H200 GPUs, whose memory reads 4.8e12 bytes/s."""
    bandwidth = 4.8e12 * MEMORY_READ.value / 3.35e12
    assert 1e3 * (num_bytes / gpus / bandwidth + layers * LAYER.value) == pytest.approx(ms, rel=0.1)
