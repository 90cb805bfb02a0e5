"""gui/x11 through the registry: texts in, images and rewards out."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from x11_traces import traces

from vlrl.environment.open import open_env
from vlrl.errors import ConfigError


def test_an_episode_by_the_oracles_words() -> None:
    env: Any = open_env("gui/x11", {"size": [800, 600], "tasks": ["files_*"], "reward": "progress"})
    try:
        observation = env.reset({"name": "files_rename"}, 4)
        assert observation.images[0].shape == (600, 800, 3) and "Rename the file" in observation.text
        paid = 0.0
        for _ in range(30):
            result = env.step(env.oracle())
            paid += result.reward
            if result.terminated:
                break
        assert paid == 1.0 and result.info["success"] and result.info["settled"]
        drawn = {env.reset({}, seed).text for seed in range(4)}
        assert len(drawn) == 4
        assert [element.role for element in env.backend.elements()] == []
    finally:
        env.close()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"size": [100, 100]}, "size"),
        ({"tasks": ["nothing_*"]}, "matches none"),
        ({"pool": -1}, "pool"),
        ({"difficulty": [2, 4]}, "difficulty"),
        ({"settle_s": 0}, "settle_s"),
        ({"sandbox": "maybe"}, "sandbox"),
        ({"colour": 1}, "colour"),
        ({"theme": ["dark", "loud"]}, "loud"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        open_env("gui/x11", options)


def test_unknown_tasks_are_named() -> None:
    env: Any = open_env("gui/x11", {"pool": 0, "tasks": "files_copy"})
    try:
        for task in ({"name": "files_move"}, {"level": 3}, {"difficulty": 4}):
            with pytest.raises(ConfigError):
                env.reset(task, 0)
    finally:
        env.close()


def test_the_seed_draws_the_theme_and_the_option_pins_it() -> None:
    def backgrounds(theme: dict[str, Any]) -> set[tuple[int, ...]]:
        env: Any = open_env("gui/x11", {"size": [320, 320], "tasks": "files_copy", "pool": 0, **theme})
        try:
            return {tuple(env.reset({}, seed).images[0][0, 0]) for seed in range(4)}
        finally:
            env.close()

    assert len(backgrounds({})) > 1 and backgrounds({"theme": "dark"}) == {(0x24, 0x30, 0x3C)}


PLAIN = """
import sys, warnings
from vlrl.environment.open import open_env
from vlrl.errors import ConfigError
try:
    env = open_env("gui/x11", {"pool": 0})
    env.reset({"name": "terminal_sort_out"}, 0)
except ConfigError as error:
    assert "user namespaces" in str(error), error
else:
    raise SystemExit("a desktop without a sandbox was given to who requires one")
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    env = open_env("gui/x11", {"pool": 0, "sandbox": "warn"})
    env.reset({"name": "terminal_sort_out"}, 0)
assert any("WITHOUT A SANDBOX" in str(warning.message) for warning in warned)
for _ in range(5):
    result = env.step(env.oracle())
    if result.terminated:
        break
print(result.info["success"])
env.close()
"""


def test_without_user_namespaces_it_refuses_or_warns_loudly() -> None:
    folder = Path(tempfile.mkdtemp(prefix="no-bwrap-"))  # pytest's folders are shut to others than root
    folder.chmod(0o755)
    broken = folder / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    before = traces()
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    child = subprocess.run(
        [sys.executable, "-c", PLAIN], env=environment, capture_output=True, text=True, timeout=120
    )
    shutil.rmtree(folder)
    assert child.returncode == 0, child.stderr
    assert child.stdout.strip() == "True"
    assert traces() == before


def test_a_process_that_is_killed_takes_its_desktops_along() -> None:
    program = (
        "import os, signal, time\nfrom vlrl.envs.gui.x11.desktop import Desktop, Machine\n"
        "d = Desktop(Machine())\nprint(*d.processes(), flush=True)\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    pids = [int(word) for word in child.stdout.split()]
    assert len(pids) > 5
    deadline = time.monotonic() + 30  # the kernel ends them one after the other
    while any(map(_lives, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_lives, pids))


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
