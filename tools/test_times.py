"""The slowest tests and files of the last `make test`.

    python tools/test_times.py [build/tests.xml] [--num 10]

A test's seconds are those of its fixtures too, so the first one to use an engine pays for its start.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "build" / "tests.xml"
"""Where `make test` has pytest write."""


def main() -> None:
    """Print both lists, or say that there is no run to read."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("report", type=Path, nargs="?", default=REPORT, help="pytest's JUnit XML")
    parser.add_argument("--num", type=int, default=10, help="entries of each list")
    args = parser.parse_args()
    if not args.report.is_file():
        sys.exit(f"{args.report} is not there; run `make test` first, which writes it at its end")
    tests = seconds_by_test(args.report)
    files: dict[str, float] = {}
    for test, seconds in tests.items():
        file = test.partition("::")[0]
        files[file] = files.get(file, 0.0) + seconds
    print(f"{sum(tests.values()):.0f} s in {len(tests)} tests")
    for what, found in (("tests", tests), ("files", files)):
        print(f"\nslowest {what}:")
        for name, seconds in sorted(found.items(), key=lambda item: -item[1])[: args.num]:
            print(f"{seconds:8.1f} s  {name}")


def seconds_by_test(report: Path) -> dict[str, float]:
    """Seconds of each test, as FILE::NAME.

    Args:
        report: pytest's JUnit XML, in which a test's class is its file with dots for slashes.
    """
    cases = (case.attrib for case in ElementTree.parse(report).iter("testcase"))
    return {
        f"{case['classname'].replace('.', '/')}.py::{case['name']}": float(case["time"]) for case in cases
    }


if __name__ == "__main__":
    main()
