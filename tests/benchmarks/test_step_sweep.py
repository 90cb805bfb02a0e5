"""The sweep's pure parts: exponents, points that are found again, tables."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))  # programs, not a package
cases = importlib.import_module("cases")
sweep_host = importlib.import_module("sweep_host")
sweep_points = importlib.import_module("sweep_points")
sweep_table = importlib.import_module("sweep_table")


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0, 0.5])
def test_a_power_law_s_exponent_is_its_power(power: float) -> None:
    sizes = [1, 2, 5, 10, 20]
    values = [3.0 * size**power for size in sizes]
    assert sweep_points.exponents(sizes, values) == pytest.approx([power] * 4)
    assert sweep_points.last_exponent(sizes, values) == pytest.approx(power)
    assert sweep_points.last_exponent(sizes, [*values[:3], None, None]) == pytest.approx(power)
    assert sweep_points.last_exponent(sizes, [1.0, None, None, None, None]) is None


def test_points_that_are_there_are_not_measured_again(tmp_path: Path) -> None:
    curve, path = sweep_points.CURVES[1], tmp_path / "points.jsonl"
    points = sweep_points.Points(path)
    assert points.missing("trainer", curve.points) == list(curve.points)
    points.add("trainer", curve.points[0].case, record(1.0))
    again = sweep_points.Points(path)
    assert again.missing("trainer", curve.points) == list(curve.points[1:])
    assert again.find("trainer", curve.points[0].case)["packed"]["cpu"] == [1.0, 1.5]
    assert again.find("whole", curve.points[0].case) is None


def test_every_curve_varies_one_quantity_and_all_but_turns_share_their_base() -> None:
    for curve in (*sweep_points.CURVES, *sweep_points.HOST):
        for points in (curve.points, curve.whole):
            fields = [dataclasses.asdict(point.case) for point in points]
            varied = {name for one in fields for name in one if one[name] != fields[0][name]}
            assert len(varied) <= 1, curve.name
            assert [point.size for point in points] == sorted(point.size for point in points)
    shared = [c.name for c in sweep_points.CURVES if sweep_points.BASE in [point.case for point in c.points]]
    assert len(shared) == len(sweep_points.CURVES) - 1


def record(seconds: float) -> dict[str, Any]:
    packed = {"cpu": [seconds, seconds * 1.5], "num_tokens": 100, "trainer_private_bytes": 2**30}
    rows = {"cpu": [4 * seconds], "num_tokens": 400, "trainer_private_bytes": 2**31}
    return {"packed": packed, "rows": rows, "floor_seconds": seconds / 2, "load": 1.0}


def test_tables_have_rows_exponents_and_what_exceeded_a_limit(tmp_path: Path) -> None:
    curve = sweep_points.CURVES[1]
    points = sweep_points.Points(tmp_path / "points.jsonl")
    for number, point in enumerate(curve.points[:3]):
        points.add("trainer", point.case, record(2.0**number))
    over = {**record(8.0), "rows": {"over": "over 8 GiB"}}
    points.add("trainer", curve.points[3].case, over)
    text = sweep_table.tables(points)
    name = curve.title
    assert f"| 4 {name} | 1 | 4 | **4.0** | 50% | 100, 400 | 1.00, 2.00 | 0.50 |" in text
    assert f"| 32 {name} | 8 | over 8 GiB |  | 50% | 100 | 1.00, – |  |" in text
    assert f"{name} packed 1.00 (memory 0.00), rows 1.00 (memory 0.00), its tokens 0.00" in text
    sweep_table.draw(points, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 1000


def test_sessions_and_packing_are_measured() -> None:
    case = dataclasses.replace(sweep_points.HOST_CASE, groups=1, group_size=2, turns=2)
    found = sweep_host.host_cost(case)
    assert min(found["sessions"]["cpu"]) > 0 < min(found["packing"]["cpu"])
    assert 0 < found["num_packed"] <= found["num_tokens"]
