"""What all commands share: exit codes, JSON, help, and that no failure is a traceback."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from vlrl.cli.app import app
from vlrl.cli.commands import config as config_command
from vlrl.errors import ConfigError, DataError, EngineError, Interrupted

QUICKSTART = Path(__file__).parents[2] / "configs" / "quickstart.yaml"


def commands() -> list[tuple[str, ...]]:
    """Every command, groups opened."""
    names: list[tuple[str, ...]] = []
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        names += [(name, inner) for inner in command.commands] if hasattr(command, "commands") else [(name,)]
    return names


def test_the_commands_are_there() -> None:
    assert {name for name, *_ in commands()} >= {
        "train", "sft", "eval", "rollout", "report", "doctor", "quickstart", "config"
    }  # fmt: skip


@pytest.mark.parametrize("name", commands(), ids=" ".join)
def test_help_has_an_example_and_json(vlrl: Any, name: tuple[str, ...]) -> None:
    result = vlrl(*name, "--help")
    assert result.code == 0
    assert f"vlrl {' '.join(name)} " in result.out.replace("Usage: vlrl", ""), "no example in the help text"
    assert "--json" in result.out
    assert "--debug" in result.out


def test_the_version(vlrl: Any) -> None:
    assert vlrl("--version").out.startswith("vlrl ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trian"], "No such command 'trian'"),
        (["train"], "Missing argument 'config'"),
        (["train", "x.yaml", "--resum"], "No such option: --resum"),
        (["config"], "Usage"),
        ([], "Usage"),
    ],
)
def test_wrong_usage_is_exit_code_2(vlrl: Any, arguments: list[str], words: str) -> None:
    result = vlrl(*arguments)
    assert result.code == 2
    assert words in result.out + result.err
    assert "Traceback" not in result.err


def test_wrong_usage_in_json(vlrl: Any) -> None:
    result = vlrl("trian", "--json")
    assert result.code == 2
    assert result.json["error"].startswith("No such command 'trian'.")
    assert result.json["kind"] == "ConfigError"


def test_a_config_is_shown_whole(vlrl: Any) -> None:
    result = vlrl("config", "show", QUICKSTART, "run.seed=5", "--json")
    assert result.code == 0
    assert result.json["run"]["seed"] == 5
    assert result.json["parity"]["num_samples"] == 4


def test_the_schema_is_json(vlrl: Any) -> None:
    schema = json.loads(vlrl("config", "schema").out)
    assert "optim" in schema["properties"]
    assert schema == vlrl("config", "schema", "--json").json


def test_help_is_shown_without_the_config() -> None:
    """Importing the config's sections and numpy takes more time than all the rest of `vlrl --help`."""
    code = """
import sys
sys.argv = ["vlrl", "--help"]
from vlrl.cli.main import main
try:
    main()
except SystemExit as stopped:
    assert not stopped.code
print(*sorted({"numpy", "pydantic", "yaml", "vlrl.config"} & set(sys.modules)))
"""
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
    assert child.stdout.splitlines()[-1] == ""


def test_a_config_is_shown_without_a_framework() -> None:
    """Help, config and their errors come at once; torch takes seconds to import, numpy a tenth of one."""
    code = f"""
import sys
sys.argv = ["vlrl", "config", "show", {str(QUICKSTART)!r}]
from vlrl.cli.main import main
try:
    main()
except SystemExit as stopped:
    assert not stopped.code
frameworks = {{"numpy", "torch", "transformers", "ray", "vllm", "deepspeed", "matplotlib"}}
print(*sorted(frameworks & set(sys.modules)))
"""
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
    assert child.stdout.splitlines()[-1] == ""


def test_a_wrong_config_is_told_before_a_framework_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("model: {path: m}\n")
    code = """
import sys
from vlrl.cli.main import main
for command in ("train", "sft", "eval", "rollout"):
    sys.argv = ["vlrl", command, FILE]
    try:
        main()
    except SystemExit as stopped:
        assert stopped.code == 2, stopped.code
print(*sorted({"torch", "transformers", "ray", "vllm", "deepspeed"} & set(sys.modules)))
"""
    child = subprocess.run(
        [sys.executable, "-c", code.replace("FILE", repr(str(file)))], capture_output=True, text=True
    )
    assert child.returncode == 0, child.stderr
    assert child.stdout == "\n"
    assert child.stderr.count("missing key 'data'") == 4


@pytest.fixture
def failing(vlrl: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`failing(error, "--json")`: `vlrl config show` with something that goes wrong inside."""

    def run(error: BaseException, *options: str) -> Any:
        def fail(*_: object) -> None:
            raise error

        monkeypatch.setattr(config_command, "read_config", fail)
        return vlrl("config", "show", "x.yaml", *options)

    return run


@pytest.mark.parametrize(
    ("error", "code"), [(ConfigError("c"), 2), (DataError("d"), 1), (Interrupted("i"), 130)]
)
def test_an_error_of_ours_is_one_line(failing: Any, error: Exception, code: int) -> None:
    result = failing(error)
    assert (result.code, result.out, result.err) == (code, "", f"error: {error}\n")
    result = failing(error, "--json")
    assert result.code == code
    assert result.json == {"error": str(error), "kind": type(error).__name__}


def test_debug_shows_the_traceback(failing: Any) -> None:
    result = failing(DataError("d"), "--debug")
    assert "Traceback (most recent call last)" in result.err
    assert "error: d" in result.err


def test_ctrl_c_anywhere_is_130(failing: Any) -> None:
    result = failing(KeyboardInterrupt(), "--json")
    assert result.code == 130
    assert result.json["kind"] == "Interrupted"
    assert result.err == "error: interrupted\n"


@pytest.mark.parametrize(
    ("error", "kind"), [(ZeroDivisionError("by zero"), "InternalError"), (EngineError("lost"), "EngineError")]
)
def test_a_surprise_keeps_its_traceback_in_a_file(
    failing: Any, error: Exception, kind: str, tmp_path: Path
) -> None:
    result = failing(error, "--json")
    assert result.code == 1
    assert result.json["kind"] == kind
    assert str(error) in result.json["error"]
    assert "Traceback" not in result.err
    (kept,) = tmp_path.glob("vlrl-error-*.txt")
    assert str(kept) in result.json["error"]
    assert "Traceback (most recent call last)" in kept.read_text()


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full: runs/a could not be written; free some space"),
        (errno.EACCES, "runs/a: Permission denied; check the path"),
    ],
)
def test_the_systems_errors_name_the_file(failing: Any, number: int, words: str) -> None:
    result = failing(OSError(number, "Permission denied", "runs/a"), "--json")
    assert result.code == 1
    assert result.json["kind"] == "ResourceError"
    assert words in result.err


@pytest.mark.parametrize(
    ("command", "page", "title"),
    [
        ("train", "grpo", "GRPO quickstart"),
        ("sft", "sft", "SFT quickstart"),
        ("dpo", "preferences", "DPO quickstart"),
        ("reward-model", "preferences", "reward model quickstart"),
        ("raft", "raft", "RAFT quickstart"),
    ],
)
def test_a_run_says_its_name_before_it_imports_its_page(command: str, page: str, title: str) -> None:
    """The page imports torch and Ray, which takes seconds."""
    code = f"""
import sys

class Page:
    def find_spec(self, name, *_):
        if name == "vlrl.{page}":
            raise SystemExit(7)

sys.meta_path.insert(0, Page())
sys.argv = ["vlrl", "{command}", {str(QUICKSTART)!r}]
from vlrl.cli.main import main
main()
"""
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (child.returncode, child.stdout) == (7, f"{title}\n"), child.stderr
