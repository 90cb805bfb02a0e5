"""What a killed owner leaves behind goes with the next one's coming."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from vlrl.envs.gui.scratch import scratch_folder


def test_a_killed_owners_folder_goes_and_a_living_ones_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine = scratch_folder("web")
    (mine / "log").write_text("mine")
    code = (
        f"import os, signal, tempfile; tempfile.tempdir = {str(tmp_path)!r}\n"
        "from vlrl.envs.gui.scratch import scratch_folder\n"
        "(scratch_folder('web') / 'log').write_text('theirs'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == -9
    [theirs] = {*tmp_path.iterdir()} - {mine}
    (tmp_path / "vlrl-web-notes-x").mkdir()  # not named like one: not ours to remove
    second = scratch_folder("web")
    assert not theirs.exists() and (mine / "log").read_text() == "mine" and second.is_dir()
    assert (tmp_path / "vlrl-web-notes-x").is_dir()
