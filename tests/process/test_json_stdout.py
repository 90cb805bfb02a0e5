"""Standard output with --json is the result alone, whoever prints: libraries, child processes, plug-ins."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

NOISY = '''
import os
import subprocess

os.write(1, b"a library's warning\\n")
print("a plug-in's print")
subprocess.run(["echo", "a child's words"])


def noisy(completion, answer):
    """Prints at import and when it is called."""
    print("called")
    return 1.0
'''


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True)


def test_what_is_printed_meanwhile_goes_to_stderr() -> None:
    code = """
import os, subprocess
from argparse import ArgumentParser
from vlrl.process.json_stdout import parse_with_json, print_json
options = parse_with_json(ArgumentParser(), ["--json"])
print("a print")
os.write(1, b"a library\\n")
subprocess.run(["echo", "a child"])
print_json({"json": options.json})
print("afterwards")
"""
    child = run("-c", code)
    assert child.stdout == '{"json": true}\n', child.stderr
    assert {"a print", "a library", "a child", "afterwards"} <= set(child.stderr.splitlines())


def test_without_the_option_stdout_is_left_alone() -> None:
    code = """
from argparse import ArgumentParser
from vlrl.process.json_stdout import parse_with_json, print_json
parse_with_json(ArgumentParser(), [])
print("a table")
print_json([1])
"""
    assert run("-c", code).stdout == "a table\n[1]\n"


def test_a_command_with_a_noisy_plug_in_prints_json_alone(tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text(NOISY)
    command = ["-c", "from vlrl.cli.main import main; main()", "reward", "show", f"{tmp_path}/noisy.py:noisy"]
    child = run(*command, "--json")
    assert child.returncode == 0, child.stderr
    assert "noisy" in json.loads(child.stdout)["name"]
    assert "a library's warning" in child.stderr
    failed = run("-c", "from vlrl.cli.main import main; main()", "train", "nowhere.yaml", "--json")
    assert json.loads(failed.stdout)["kind"] == "ConfigError"


def benchmarks() -> list[Path]:
    folder = Path(__file__).parents[2] / "benchmarks"
    return sorted(path for path in folder.glob("*.py") if "ArgumentParser(" in path.read_text())


@pytest.mark.parametrize("path", benchmarks(), ids=lambda path: path.stem)
def test_every_benchmark_s_json_goes_out_the_same_way(path: Path) -> None:
    """Running them all takes an hour; those that no other test runs are held by their source."""
    source = path.read_text()
    assert "parse_args(" not in source or '"--json"' not in source
    assert not re.search(r"\n\s+print\(json\.dumps\((?!.*indent)", source)
