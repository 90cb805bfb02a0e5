"""Where media come from: paths that stay put, and files that are not what they seem."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest
from builders import random_image
from PIL import Image

from vlrl.config.data import MediaConfig
from vlrl.errors import DataError
from vlrl.processors.media.sources import Encoded, locate, sniff, under_root

WHERE = "rows.jsonl:3"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.png").touch()
    (folder / "sub" / "b.png").touch()
    (tmp_path / "secret.png").touch()
    return folder


def find(source: Any, **limits: Any) -> Encoded:
    located = locate(source, MediaConfig(**limits), WHERE)
    assert isinstance(located, Encoded)
    return located


@pytest.mark.parametrize("name", ["a.png", "sub/b.png", "./sub/../a.png", "missing.png"])
def test_a_name_within_the_root_is_joined(root: Path, name: str) -> None:
    assert under_root(root, name, WHERE) == Path(os.path.normpath(root / name))
    assert under_root(root, str(root / name), WHERE) == Path(os.path.normpath(root / name))


@pytest.mark.parametrize("name", ["../secret.png", "sub/../../secret.png", "/etc/passwd", "..", "a\0b"])
def test_a_name_that_leads_out_is_refused(root: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"rows\.jsonl:3"):
        under_root(root, name, WHERE)


def test_links_are_followed_before_judging(root: Path, tmp_path: Path) -> None:
    (root / "inside.png").symlink_to(root / "a.png")
    (root / "outside.png").symlink_to(tmp_path / "secret.png")
    (root / "folder").symlink_to(tmp_path)
    (root / "loop").symlink_to(root / "loop")
    (tmp_path / "alias").symlink_to(root)
    assert under_root(root, "inside.png", WHERE) == root / "a.png"
    assert under_root(tmp_path / "alias", "a.png", WHERE) == root / "a.png"
    for name in ("outside.png", "folder/secret.png"):
        with pytest.raises(DataError, match=r"leads to .*secret\.png, out of .*root; copy the file there"):
            under_root(root, name, WHERE)


def test_a_sibling_with_the_same_beginning_is_outside(root: Path, tmp_path: Path) -> None:
    (tmp_path / "root-of-others").mkdir()
    with pytest.raises(DataError, match="out of"):
        under_root(root, "../root-of-others/a.png", WHERE)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_ordinary_file_is_refused_at_once(tmp_path: Path, make: Any) -> None:
    """Opening a named pipe waits for a writer, for ever."""
    make(tmp_path / "x.png")
    with pytest.raises(
        DataError, match=r"rows\.jsonl:3: '.*x\.png' (is not an ordinary file|cannot be opened)"
    ):
        find(tmp_path / "x.png").read()


def test_an_endless_device_is_refused() -> None:
    with pytest.raises(DataError, match="is not an ordinary file"):
        find("/dev/zero").read()


@pytest.mark.parametrize("kind", ["path", "bytes", "base64", "data URL"])
def test_too_many_bytes_are_refused_before_they_are_read(kind: str, tmp_path: Path) -> None:
    data = bytes(40_000)
    (tmp_path / "a.png").write_bytes(data)
    text = base64.b64encode(b"\x89PNG\r\n\x1a\n" + data).decode()
    source = {"path": tmp_path / "a.png", "bytes": data, "base64": text, "data URL": f"data:;base64,{text}"}[
        kind
    ]
    with pytest.raises(DataError, match=r"takes 0\.038\d? MiB, more than media\.max_file_mib=0\.01"):
        find(source, max_file_mib=0.01).read()


def test_a_sparse_file_of_a_terabyte_is_refused(tmp_path: Path) -> None:
    with open(tmp_path / "a.png", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(DataError, match=r"more than media\.max_file_mib=512"):
        find(tmp_path / "a.png").open()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("file:///etc/passwd", "file: URLs are refused; give the path itself"),
        ("FILE:/etc/passwd", "file: URLs are refused"),
        ("ftp://host/a.png", "only http and https"),
        ("data:image/png,abc", "needs ';base64,'"),
        ("data:image/png;base64,!!!", "is not base64"),
    ],
)
def test_other_addresses_are_refused(source: str, message: str) -> None:
    with pytest.raises(DataError, match=rf"rows\.jsonl:3: .*{message}"):
        find(source)


def test_base64_of_a_jpeg_is_not_taken_for_a_path(tmp_path: Path) -> None:
    Image.fromarray(random_image(9, 9)).save(tmp_path / "a.jpg")
    data = (tmp_path / "a.jpg").read_bytes()
    text = base64.b64encode(data).decode()
    assert text.startswith("/9j/")
    assert find(text).read() == data
    assert find("/9j/a.jpg").path == Path("/9j/a.jpg")


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\xff\xd8\xff\xe0", "image"),
        (b"\0\0\0\x20ftypavif", "image"),
        (b"\0\0\0\x20ftypisom", "video"),
        (b"RIFF\0\0\0\0WEBP", "image"),
        (b"RIFF\0\0\0\0AVI ", "video"),
        (b"RIFF\0\0\0\0WAVE", "audio"),
        (b"\x1aE\xdf\xa3", "video"),
        (b"#EXTM3U\n", None),
        (b"", None),
    ],
)
def test_the_first_bytes_say_what_it_is(head: bytes, kind: str | None) -> None:
    assert sniff(head) == kind
