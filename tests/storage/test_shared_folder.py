"""A rank on a host with another folder of the run's name is found before it costs anything, or at a save."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from vlrl.errors import ConfigError
from vlrl.storage.shared_folder import SharedFile, WrittenFiles, require_seen


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def test_a_rank_that_sees_the_driver_s_file_is_let_through(tmp_path: Path) -> None:
    SharedFile.written_to(write(tmp_path / "run", lock="mine") / "lock").require(0)


@pytest.mark.parametrize("here", [None, "another run's"])
def test_a_rank_whose_host_has_another_folder_of_that_name_is_refused(
    tmp_path: Path, here: str | None
) -> None:
    shared = SharedFile.written_to(write(tmp_path / "run", lock="mine") / "lock")
    if here is None:
        shared.path.unlink()
    else:
        shared.path.write_text(here)
    with pytest.raises(ConfigError) as refused:
        shared.require(3)
    assert str(refused.value).startswith(
        f"trainer rank 3 on host {socket.gethostname()} does not see the run's folder {tmp_path}/run: "
    )
    assert "set run.dir to one that all hosts share" in str(refused.value)


def test_what_all_ranks_see_is_what_the_driver_sees(tmp_path: Path) -> None:
    write(tmp_path, a="1", b="22")
    of_ranks = [WrittenFiles.under(str(tmp_path)) for _ in range(2)]
    assert require_seen(tmp_path, of_ranks) == {"a": 1, "b": 2}


@pytest.mark.parametrize("harm", ["missing", "another size"])
def test_a_file_that_a_rank_wrote_elsewhere_is_named_with_its_host(tmp_path: Path, harm: str) -> None:
    mine = write(tmp_path / "head", rank_0="0")
    theirs = WrittenFiles("node-7", WrittenFiles.under(str(write(tmp_path / "node", rank_1="11"))).sizes)
    if harm == "another size":
        write(mine, rank_1="1")
    with pytest.raises(ConfigError) as refused:
        require_seen(mine, [WrittenFiles.under(str(mine)), theirs])
    assert str(refused.value).startswith(
        f"trainer rank 1 on host node-7 wrote {mine}/rank_1 (2 bytes), and the driver on host "
        f"{socket.gethostname()} does not see it: "
    )
    assert "set run.dir to one that all hosts share (NFS, Lustre, a mounted bucket)" in str(refused.value)


def test_files_in_folders_are_named_by_their_path(tmp_path: Path) -> None:
    write(write(tmp_path / "zero"), rank_0="0")
    assert WrittenFiles.under(str(tmp_path)).sizes == {os.path.join("zero", "rank_0"): 1}
