"""tools/commit_subjects.py in full, shallow, foreign and absent histories, and as pre-commit's hook."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

FILE = Path(__file__).parent.parent.parent / "tools" / "commit_subjects.py"
LONG = "a" * 73


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("commit_subjects", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


commit_subjects = load()


def git(folder: Path, *arguments: object) -> str:
    who = {f"GIT_{role}_{key}": "x" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
    command = ["git", *map(str, arguments)]
    done = subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True, env=os.environ | who
    )
    return done.stdout.strip()


def commit(folder: Path, subject: str) -> str:
    git(folder, "commit", "-q", "--allow-empty", "-m", subject)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a long subject that is older than the check."""
    folder = tmp_path / "history"
    folder.mkdir()
    git(folder, "init", "-q")
    monkeypatch.setattr(commit_subjects, "BASE", commit(folder, LONG))
    monkeypatch.setattr(commit_subjects.new_subjects, "__defaults__", (commit_subjects.BASE,))
    return folder


def test_new_subjects_have_at_most_72_characters(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert commit_subjects.main([], history) == 0
    commit(history, "é" * 72)
    assert commit_subjects.main([], history) == 0
    commit(history, LONG)
    commit(history, "Short again")
    assert commit_subjects.main([], history) == 1
    assert f"the subject has 73 characters; shorten it to 72: {LONG}" in capsys.readouterr().out


def test_a_shallow_clone_is_checked_as_far_as_it_goes(history: Path, tmp_path: Path) -> None:
    commit(history, LONG)
    commit(history, "Short")
    commit(history, "Shorter")
    for depth, code in ((2, 0), (3, 1), (4, 1)):
        clone = tmp_path / f"clone{depth}"
        git(tmp_path, "clone", "-q", "--depth", depth, f"file://{history}", clone)
        assert commit_subjects.main([], clone) == code


@pytest.mark.parametrize("missing", ["git", "repository", "base"])
def test_a_history_that_cannot_be_read_is_reported(
    missing: str,
    history: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    commit(history, LONG)
    folder = history
    if missing == "git":
        monkeypatch.setenv("PATH", str(tmp_path))
    elif missing == "repository":
        folder = tmp_path
    else:
        monkeypatch.setattr(commit_subjects.new_subjects, "__defaults__", ("0" * 40,))
    assert commit_subjects.main([], folder) == 0
    assert "commit subjects: not checked: " in capsys.readouterr().out


def test_this_history_holds_it(root: Path) -> None:
    assert commit_subjects.main([], root) == 0


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("# a comment\n\nShort\n\n" + LONG, 0),
        (LONG, 1),
        (f"fixup! {LONG}", 0),
        ("", 0),
    ],
)
def test_the_hook_reads_the_subject_alone(message: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "message").write_text(message)
    assert commit_subjects.main(["--message", str(tmp_path / "message")]) == code


def test_pre_commit_runs_this_checkout_s_programs_only(root: Path, tmp_path: Path) -> None:
    """No hook is fetched: each is a program of .venv or a file of tools/."""
    config = yaml.safe_load((root / ".pre-commit-config.yaml").read_text())
    assert [repository["repo"] for repository in config["repos"]] == ["local"]
    hooks = {hook["id"]: hook for hook in config["repos"][0]["hooks"]}
    assert set(hooks) == {"ruff", "ruff-format", "commit-subject"}
    assert {hook["language"] for hook in hooks.values()} == {"system"}
    assert set(config["default_install_hook_types"]) == {"pre-commit", "commit-msg"}
    (tmp_path / "message").write_text(LONG)
    (tmp_path / "bad.py").write_text("import os\nx = [1,2]\n")
    for hook, file in (("commit-subject", "message"), ("ruff", "bad.py"), ("ruff-format", "bad.py")):
        program, *rest = hooks[hook]["entry"].split()
        command = [sys.executable, *rest] if program.endswith("python") else [root / program, *rest]
        done = subprocess.run([*command, tmp_path / file], cwd=root, capture_output=True, text=True)
        assert done.returncode == 1, done.stdout + done.stderr
