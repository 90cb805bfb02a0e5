"""Folders at URLs: a real S3 server, a folder of this machine, and what is said of those that fail."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

import pytest
from object_store import Bucket

from vlrl.errors import ConfigError, ResourceError
from vlrl.storage import remote
from vlrl.storage.remote import RemoteFile, RemoteFolder
from vlrl.storage.stopping import Stopped

OPTION = "checkpoint.upload_to"
HOST = re.escape(socket.gethostname())


def never() -> bool:
    return False


@pytest.fixture(params=["s3", "file"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> RemoteFolder:
    if request.param == "file":
        return RemoteFolder(f"file://{tmp_path}/there/prefix", OPTION)
    bucket: Bucket = request.getfixturevalue("bucket")
    return RemoteFolder(f"{bucket.url}/prefix/", OPTION)


def test_what_is_written_is_listed_and_read_and_gone_when_removed(
    folder: RemoteFolder, tmp_path: Path
) -> None:
    assert folder.files() == {}
    folder.require_writable()
    assert folder.files() == {}  # nothing is left of the trial
    (tmp_path / "local").write_bytes(b"12345")
    folder.upload(tmp_path / "local", "a/b/weights", never)
    folder.write("note.json", b"{}")
    assert {name: file.size for name, file in folder.files().items()} == {"a/b/weights": 5, "note.json": 2}
    assert folder.read("note.json") == b"{}"
    assert folder.read("nothing") is None
    folder.download("a/b/weights", tmp_path / "new" / "copy")
    assert (tmp_path / "new" / "copy").read_bytes() == b"12345"
    folder.remove("note.json")
    folder.remove("note.json")
    assert set(folder.files()) == {"a/b/weights"}


def test_another_content_has_another_tag(folder: RemoteFolder) -> None:
    found: list[RemoteFile] = []
    for content in (b"one", b"two"):
        folder.write("file", content)
        found.append(folder.files()["file"])
    assert found[0].size == found[1].size
    assert found[0].tag != found[1].tag


def test_a_large_file_goes_in_parts_and_an_upload_that_is_given_up_leaves_none(
    bucket: Bucket, tmp_path: Path
) -> None:
    folder = RemoteFolder(bucket.url, OPTION)
    large = tmp_path / "large"
    large.write_bytes(os.urandom(2**20) * 101)  # up to 100 MiB s3fs sends a file whole
    folder.upload(large, "large", never)
    folder.download("large", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == large.read_bytes()
    with pytest.raises(Stopped):
        folder.upload(large, "other", lambda: True)
    assert bucket.names() == ["large"]
    assert bucket.unfinished_uploads() == 0


def test_a_bucket_that_is_not_there(bucket: Bucket) -> None:
    folder = RemoteFolder("s3://nobody-has-made-this/prefix", OPTION)
    with pytest.raises(
        ResourceError,
        match=rf"^checkpoint\.upload_to: host {HOST} could not write s3://nobody-has-made-this/",
    ):
        folder.require_writable()
    with pytest.raises(ResourceError, match="there is no such bucket or folder: make it, or correct the URL"):
        folder.write("file", b"")


def test_a_storage_that_cannot_be_reached(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    words = r"it cannot be reached: check the network, and AWS_ENDPOINT_URL of an S3 not Amazon's"
    with pytest.raises(ResourceError, match=words):
        RemoteFolder(bucket.url, OPTION).require_writable()


def test_a_storage_that_never_answers(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "PROBE_S", 0.0)
    with pytest.raises(ResourceError, match=r"host .* got no answer from s3://bucket-\d+ in 0 s; it cannot"):
        RemoteFolder(bucket.url, OPTION).require_writable()


def test_missing_credentials(bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    with pytest.raises(ResourceError, match=r"set credentials, for S3: AWS_ACCESS_KEY_ID, AWS_S"):
        RemoteFolder(bucket.url, OPTION).require_writable()


def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ResourceError, match=r"upload_to: host .* could not write file://.*/file/x/.*NotADir"):
        RemoteFolder(f"file://{tmp_path}/file/x", OPTION).require_writable()


def test_a_storage_that_is_full_is_told_from_a_full_disk_here(tmp_path: Path) -> None:
    for name in ("there", "here"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "full").symlink_to("/dev/full")
    (tmp_path / "local").write_bytes(b"1")
    folder = RemoteFolder(f"file://{tmp_path}/there", OPTION)
    with pytest.raises(
        ResourceError, match=r"could not write .*No space left.*; the storage is full: free some"
    ):
        folder.upload(tmp_path / "local", "full", never)
    folder.write("some", b"1")
    with pytest.raises(OSError, match="No space left"):
        folder.download("some", tmp_path / "here" / "full")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nope://bucket/a", r"upload_to: nope://bucket/a: Protocol not known: nope"),
        ("gs://bucket/a", r"upload_to: gs://bucket/a needs a package: pip install .*gcsfs"),
    ],
)
def test_a_url_that_nothing_here_opens(url: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        RemoteFolder(url, OPTION)


def test_s3_without_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_it(*arguments: object, **options: object) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr("fsspec.core.url_to_fs", without_it)
    with pytest.raises(
        ConfigError, match=r"upload_to: s3://bucket needs a package: pip install 'vlrl\[s3\]'"
    ):
        RemoteFolder("s3://bucket", OPTION)
