"""A hub gets the folder that was pushed, byte for byte, by the client that users have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_server import TOKEN, Hub, hub_server

from vlrl.errors import ConfigError, ResourceError
from vlrl.export.folder import export_run
from vlrl.export.hub import push


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    from huggingface_hub import constants

    with hub_server() as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield server


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_hub_has_what_was_pushed_and_is_sent_changes_alone(
    hub: Hub, trained_run: Path, tmp_path: Path
) -> None:
    out = Path(export_run(trained_run, tmp_path / "model", max_shard_gib=0.001)["folder"])
    address = push(out, "me/digits", private=True, message="first")
    assert address.startswith(f"{hub.url}/me/digits/commit/")
    assert hub.files["me/digits"] == content(out) and hub.private["me/digits"]
    uploads = len(hub.uploads)
    assert uploads >= 3  # shards, curves
    (out / "README.md").write_text("---\ntags: [changed]\n---\n")
    push(out, "me/digits", private=True, message="second")
    assert hub.files["me/digits"] == content(out) and len(hub.uploads) == uploads
    assert hub.commits["me/digits"] == ["first", "second"]


def test_a_wrong_token_is_said(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(ConfigError, match=r"answered 401 .*give a token that may write .HF_TOKEN"):
        push(tmp_path, "me/digits", private=True, message="first")
    assert hub.files == {}


def test_a_hub_that_is_gone_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    with hub_server() as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with pytest.raises(ResourceError, match="cannot be reached"):
        push(tmp_path, "me/digits", private=True, message="first")


def test_offline_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="HF_HUB_OFFLINE is set"):
        push(tmp_path, "me/digits", private=True, message="first")
