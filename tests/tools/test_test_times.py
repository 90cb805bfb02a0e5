"""tools/test_times.py on the report of a real run of pytest."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "test_times.py"
QUICK = "def test_quick():\n    pass\n"
SLOW = """
import time
import pytest

@pytest.fixture(scope="module")
def engine():
    time.sleep(0.4)

@pytest.mark.parametrize("n", [1, 2])
def test_slow(engine, n):
    time.sleep(0.1)
"""


def times(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(TOOL), *map(str, arguments)], capture_output=True, text=True)


def test_the_slowest_tests_and_files_come_first(tmp_path: Path) -> None:
    (tmp_path / "test_quick.py").write_text(QUICK)
    (tmp_path / "test_slow.py").write_text(SLOW)
    report = tmp_path / "tests.xml"
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr

    shown = times(report, "--num", 1)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[0].endswith(" s in 3 tests")
    spent, names = zip(*re.findall(r"([\d.]+) s  (\S+)", shown.stdout), strict=True)
    assert names == ("test_slow.py::test_slow[1]", "test_slow.py")
    assert float(spent[1]) >= float(spent[0]) >= 0.5


def test_a_run_that_is_not_there_is_named(tmp_path: Path) -> None:
    shown = times(tmp_path / "none.xml")
    assert shown.returncode == 1
    assert "none.xml is not there; run `make test` first" in shown.stderr
    assert "Traceback" not in shown.stderr


def test_make_test_writes_what_the_tool_reads() -> None:
    read = runpy.run_path(str(TOOL))["REPORT"].relative_to(ROOT)
    assert f"--junitxml={read}\n" in (ROOT / "Makefile").read_text()
