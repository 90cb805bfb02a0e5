"""Checkpoints in a bucket: whole or not counted, fetched where there are none; failures are reported."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from builders import make_config
from checkpoint_files import write_least
from object_store import Bucket

from vlrl.config import Config
from vlrl.errors import ConfigError, ResourceError
from vlrl.run.checkpoint import RunState, latest_checkpoint, save_checkpoint
from vlrl.run.completion import Completion
from vlrl.run.manifest import add_digests, damage
from vlrl.run.remote import RemoteCheckpoints, require_uploaded, upload_missing
from vlrl.run.resume import find_beginning, write_config
from vlrl.storage.remote import RemoteFolder
from vlrl.storage.stopping import Stopped

FILES = ["files.json", "model/weights", "run.json", "state/weights"]


class Told(list[tuple[str, str]]):
    """What a run would say and keep in its events."""

    def __call__(self, event: str, text: str) -> None:
        self.append((event, text))


def never() -> bool:
    return False


def config_of(bucket: Bucket, folder: Path, **sections: Any) -> Config:
    checkpoint = {"upload_to": f"{bucket.url}/runs", "keep": 2}
    return make_config(run={"name": "a", "dir": str(folder)}, checkpoint=checkpoint, **sections)


def save(config: Config, step: int) -> Path:
    """A checkpoint with its digests."""
    folder = save_checkpoint(config.run_dir, RunState(step, 0, 1), write_least, keep=2)
    add_digests(folder)
    return folder


def remote_of(config: Config) -> RemoteCheckpoints:
    remote = RemoteCheckpoints.of(config)
    assert remote is not None
    return remote


def keys_of(step: int) -> list[str]:
    return [f"runs/a/step_{step:06d}/{name}" for name in FILES]


@pytest.fixture
def config(bucket: Bucket, tmp_path: Path) -> Config:
    return config_of(bucket, tmp_path / "one")


@pytest.fixture
def elsewhere(bucket: Bucket, tmp_path: Path) -> Config:
    """The same run on a machine that has none of its files."""
    return config_of(bucket, tmp_path / "other")


def test_without_a_url_there_is_none() -> None:
    assert RemoteCheckpoints.of(make_config()) is None


def test_a_checkpoint_is_copied_with_its_manifest_last(
    config: Config, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    upload, write = RemoteFolder.upload, RemoteFolder.write
    monkeypatch.setattr(RemoteFolder, "upload", lambda *a: written.append(a[2]) or upload(*a))
    monkeypatch.setattr(RemoteFolder, "write", lambda *a: written.append(a[1]) or write(*a))
    folder = save(config, 3)
    remote_of(config).upload(folder, never)
    assert bucket.names() == keys_of(3)
    assert written[-1] == "step_000003/files.json" and len(written) == len(FILES)
    assert bucket.get("runs/a/step_000003/files.json") == (folder / "files.json").read_bytes()
    require_uploaded(remote_of(config), config.run_dir)
    remote_of(config).upload(folder, never)  # it is there
    assert len(written) == len(FILES)


def test_the_last_ones_are_kept_and_later_ones_go(config: Config, bucket: Bucket) -> None:
    """A run that went back behind a damaged step does it again."""
    remote = remote_of(config)
    for step in (2, 4, 9, 6):
        remote.upload(save(config, step), never)
    assert remote.steps() == ["step_000006", "step_000004"]
    assert bucket.names() == [*keys_of(4), *keys_of(6)]


def test_the_best_one_is_kept_and_comes_along_elsewhere(bucket: Bucket, tmp_path: Path) -> None:
    told = Told()
    here, there = (
        config_of(bucket, tmp_path / name, eval={"keep_best": True, "every": 2}) for name in ("one", "other")
    )
    for step, best in ((2, 2), (4, 2), (6, 2), (8, 8), (10, 8), (12, 8), (14, 8)):
        selection = {"best": 0.5, "best_step": best, "num_since": 0, "last_step": step}
        state = RunState(step, 0, 1, selection=selection)
        folder = save_checkpoint(here.run_dir, state, write_least, keep=9)
        add_digests(folder)
        if step == 8:  # a newer one is whole before this one's turn comes: others would be passed over
            save_checkpoint(here.run_dir, RunState(9, 0, 1, selection=selection), write_least, keep=9)
        remote_of(here).upload(folder, never)
        if step == 6:
            assert remote_of(here).steps() == ["step_000006", "step_000004", "step_000002"]
    assert remote_of(here).steps() == ["step_000014", "step_000012", "step_000008"]
    newest = remote_of(there).fetch_newer(told)
    assert newest is not None and newest.name == "step_000014"
    best = there.run_dir / "checkpoints" / "step_000008"
    assert damage(best) == "" and [event for event, _ in told] == ["checkpoint_fetched"] * 2


def test_other_files_of_the_bucket_are_left_alone(config: Config, bucket: Bucket) -> None:
    others = ["runs/a/notes.txt", "runs/ab/step_000001/files.json", "step_000001/files.json"]
    for key in others:
        bucket.put(key, b"mine")
    remote = remote_of(config)
    for step in (2, 4, 6):
        remote.upload(save(config, step), never)
    assert set(others) <= set(bucket.names())


def test_an_upload_that_is_cut_off_is_never_taken_for_whole(
    config: Config, elsewhere: Config, bucket: Bucket
) -> None:
    remote, answers = remote_of(config), iter([False, False, False, True])
    remote.upload(save(config, 2), never)
    with pytest.raises(Stopped):
        remote.upload(save(config, 4), lambda: next(answers, True))
    assert len(bucket.names()) > len(FILES)
    assert remote.steps() == ["step_000002"]
    found = find_beginning(elsewhere, resume=True, tell=Told()).checkpoint
    assert found is not None and found[1].next_step == 2
    with pytest.raises(ResourceError, match=r"step_000004 was not uploaded to s3://.*/runs/a .*--resume up"):
        require_uploaded(remote, config.run_dir)


def test_a_step_that_is_done_again_is_not_whole_while_its_files_are_replaced(
    config: Config, bucket: Bucket
) -> None:
    remote = remote_of(config)
    remote.upload(save(config, 2), never)
    again = save_checkpoint(config.run_dir, RunState(2, 5, 1), write_least, keep=2)
    add_digests(again)
    with pytest.raises(Stopped):
        remote.upload(again, lambda: True)
    assert remote.steps() == []
    remote.upload(again, never)
    assert json.loads(bucket.get("runs/a/step_000002/run.json"))["seed"] == 5


def test_an_older_one_is_not_uploaded_once_a_newer_is_whole(config: Config, bucket: Bucket) -> None:
    older, newer = save(config, 2), save(config, 4)
    remote = remote_of(config)
    remote.upload(older, never)
    assert bucket.names() == []
    remote.upload(newer, never)
    assert bucket.names() == keys_of(4)


def test_a_machine_without_the_folder_goes_on_from_the_bucket(config: Config, elsewhere: Config) -> None:
    write_config(config.run_dir, config, 0)

    def write(folder: Path) -> dict[str, int]:
        shutil.copy(config.run_dir / "config.yaml", folder)
        return write_least(folder)

    for step in (2, 4):
        add_digests(save_checkpoint(config.run_dir, RunState(step, 0, 1), write, keep=2))
        remote_of(config).upload(config.run_dir / "checkpoints" / f"step_{step:06d}", never)
    told = Told()
    beginning = find_beginning(elsewhere, resume=True, tell=told)
    folder = elsewhere.run_dir / "checkpoints" / "step_000004"
    assert beginning.checkpoint == (folder, RunState(4, 0, 1))
    assert damage(folder) == ""
    assert [event for event, _ in told] == ["checkpoint_fetched", "config_changed"]  # run.dir is another
    assert [change.key for change in beginning.changes] == ["run.dir"]
    assert find_beginning(elsewhere, resume=True, tell=Told()).step == 4  # and is not fetched again


def test_what_cannot_change_is_refused_there_too(config: Config, bucket: Bucket, tmp_path: Path) -> None:
    write_config(config.run_dir, config, 0)

    def write(folder: Path) -> dict[str, int]:
        shutil.copy(config.run_dir / "config.yaml", folder)
        return write_least(folder)

    folder = save_checkpoint(config.run_dir, RunState(2, 0, 1), write, keep=2)
    add_digests(folder)
    remote_of(config).upload(folder, never)
    other = config_of(bucket, tmp_path / "other", optim={"state": "8bit"})
    with pytest.raises(ConfigError, match=r"optim\.state: 'float32' → '8bit'"):
        find_beginning(other, resume=True, tell=Told())


def test_a_later_step_in_the_bucket_is_fetched_and_an_earlier_one_is_not(
    config: Config, elsewhere: Config
) -> None:
    remote_of(config).upload(save(config, 6), never)
    save(elsewhere, 4)
    assert find_beginning(elsewhere, resume=True, tell=Told()).step == 6
    save(elsewhere, 8)
    told = Told()
    assert find_beginning(elsewhere, resume=True, tell=told).step == 8
    assert told == []


@pytest.mark.parametrize("harm", ["missing", "truncated", "changed"])
def test_a_damaged_one_in_the_bucket_gives_way_to_the_one_before(
    config: Config, elsewhere: Config, bucket: Bucket, harm: str
) -> None:
    for step in (2, 4):
        remote_of(config).upload(save(config, step), never)
    key = "runs/a/step_000004/state/weights"
    if harm == "missing":
        bucket.remove(key)
    else:
        bucket.put(key, b"" if harm == "truncated" else b"x")
    told = Told()
    assert find_beginning(elsewhere, resume=True, tell=told).step == 2
    assert told[0][0] == "checkpoint_damaged"
    assert "/runs/a/step_000004: state/weights " in told[0][1]
    assert not (elsewhere.run_dir / "checkpoints" / "step_000004").exists()


def test_nothing_anywhere_is_an_error(elsewhere: Config) -> None:
    with pytest.raises(ConfigError, match=r"no checkpoint under .*; run without --resume"):
        find_beginning(elsewhere, resume=True, tell=Told())


def test_a_new_run_is_not_mixed_with_an_earlier_one_of_its_name(config: Config, elsewhere: Config) -> None:
    assert find_beginning(elsewhere, resume=False, tell=Told()).step == 0
    remote_of(config).upload(save(config, 2), never)
    with pytest.raises(
        ConfigError, match=r"^s3://.*/runs/a holds an earlier run; continue with --resume, give"
    ):
        find_beginning(elsewhere, resume=False, tell=Told())


def test_a_failed_upload_is_told_and_the_next_checkpoint_goes_up(
    config: Config, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told()
    completion = Completion([add_digests, remote_of(config).upload], told)
    with monkeypatch.context() as broken:
        broken.setattr(RemoteFolder, "upload", fail)
        completion.begin(save_checkpoint(config.run_dir, RunState(2, 0, 1), write_least, keep=2))
        completion.finish()
    ((event, text),) = told
    assert event == "checkpoint_not_completed"
    assert text.endswith("no room; the run goes on, and tries again with the next checkpoint")
    with pytest.raises(ResourceError, match=r"RUN/events\.jsonl says why"):
        require_uploaded(remote_of(config), config.run_dir)
    completion.begin(save_checkpoint(config.run_dir, RunState(4, 0, 1), write_least, keep=2))
    completion.finish()
    completion.close()
    assert bucket.names() == keys_of(4)
    require_uploaded(remote_of(config), config.run_dir)


def test_a_full_disk_at_the_url_leaves_nothing_that_counts(tmp_path: Path) -> None:
    full = tmp_path / "there" / "a" / "step_000002" / "model" / "weights"
    full.parent.mkdir(parents=True)
    full.symlink_to("/dev/full")
    there = f"file://{tmp_path}/there"
    config = make_config(run={"name": "a", "dir": str(tmp_path / "here")}, checkpoint={"upload_to": there})
    told = Told()
    completion = Completion([add_digests, remote_of(config).upload], told)
    completion.begin(save_checkpoint(config.run_dir, RunState(2, 0, 1), write_least, keep=2))
    completion.finish()
    ((event, text),) = told
    assert event == "checkpoint_not_completed"
    assert re.search(r": host \S+ could not write file://.*/model/weights .*; the storage is full:", text)
    assert remote_of(config).steps() == []
    full.unlink()
    completion.begin(save_checkpoint(config.run_dir, RunState(4, 0, 1), write_least, keep=2))
    completion.finish()
    completion.close()
    assert remote_of(config).steps() == ["step_000004"]
    require_uploaded(remote_of(config), config.run_dir)


def fail(*_: object) -> None:
    raise ResourceError("no room")


def test_a_finished_run_s_missing_upload_is_made_later(config: Config, bucket: Bucket) -> None:
    told = Told()
    upload_missing(config, told)  # there is nothing yet
    save_checkpoint(config.run_dir, RunState(2, 0, 1), write_least, keep=2)
    upload_missing(config, told)
    assert bucket.names() == keys_of(2)
    assert [event for event, _ in told] == ["checkpoint_uploaded"]
    upload_missing(config, told)
    upload_missing(make_config(), told)
    assert len(told) == 1


@pytest.mark.parametrize("url", ["bucket/prefix", "/folder", "s3://", ""])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=r"checkpoint\.upload_to"):
        make_config(checkpoint={"upload_to": url})


def test_fetched_ones_are_verified_like_any_other(config: Config, elsewhere: Config) -> None:
    remote_of(config).upload(save(config, 2), never)
    find_beginning(elsewhere, resume=True, tell=Told())
    told = Told()
    assert latest_checkpoint(elsewhere.run_dir, told)[1].next_step == 2
    assert told == []
