"""A model at a URL: fetched once, whole or not at all, and again when it has changed."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from builders import make_config
from object_store import Bucket

from vlrl.engine.arguments import engine_arguments
from vlrl.errors import ConfigError, ResourceError
from vlrl.model.meta_model import empty_model
from vlrl.plan.model_config import find_model_config
from vlrl.processors.auto import model_type, open_processor
from vlrl.storage.model_cache import local_model, models_folder
from vlrl.storage.remote import RemoteFolder


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return models_folder()


@pytest.fixture
def url(bucket: Bucket, tiny_model: Path) -> str:
    for file in sorted(tiny_model.rglob("*")):
        if file.is_file():
            bucket.put(f"my/model/{file.relative_to(tiny_model)}", file.read_bytes())
    return f"{bucket.url}/my/model"


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that are fetched."""
    fetched: list[str] = []
    download = RemoteFolder.download

    def noted(self: RemoteFolder, name: str, local: Path) -> None:
        fetched.append(name)
        download(self, name, local)

    monkeypatch.setattr(RemoteFolder, "download", noted)
    return fetched


def contents(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


@pytest.mark.parametrize("path", ["Qwen/Qwen2.5-VL-3B-Instruct", "/data/model"])
def test_what_is_no_url_is_left_as_it_is(path: str, cache: Path) -> None:
    assert local_model(path) == path
    assert not cache.exists()


def test_it_is_fetched_once_however_many_ask_for_it_at_once(
    url: str, tiny_model: Path, downloads: list[str]
) -> None:
    with ThreadPoolExecutor(4) as threads:
        (folder,) = set(threads.map(local_model, [url] * 4))
    assert contents(Path(folder)) == contents(tiny_model)
    assert sorted(downloads) == sorted(contents(tiny_model))


def test_a_changed_model_is_fetched_again(url: str, bucket: Bucket, downloads: list[str]) -> None:
    first = local_model(url)
    config = json.loads(bucket.get("my/model/config.json"))
    bucket.put("my/model/config.json", json.dumps(config | {"changed": True}).encode())
    second = local_model(url)
    assert first != second
    assert json.loads((Path(second) / "config.json").read_text())["changed"]
    assert "changed" not in json.loads((Path(first) / "config.json").read_text())


def test_what_was_cut_off_is_no_copy(
    url: str, tiny_model: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    download = RemoteFolder.download

    def cut_off(self: RemoteFolder, name: str, local: Path) -> None:
        download(self, name, local)
        local.write_bytes(local.read_bytes()[:-1])

    with monkeypatch.context() as patched:
        patched.setattr(RemoteFolder, "download", cut_off)
        with pytest.raises(ResourceError, match=r"s3://.*: \d+ of \d+ bytes came to host .*; try"):
            local_model(url)
    assert [path.suffix for path in cache.iterdir()] == [".lock"]
    assert contents(Path(local_model(url))) == contents(tiny_model)


def test_a_full_disk_of_the_cache(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: RemoteFolder, name: str, local: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RemoteFolder, "download", full)
    with pytest.raises(ResourceError, match=r"s3://.*: host .* could not copy it .*\(No space left.* XDG_C"):
        local_model(url)


def test_a_cache_that_cannot_be_written(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(ResourceError, match=r"could not copy it .*/file/.* \(Not a directory\); .*XDG_C"):
        local_model(url)


def test_a_url_without_a_model(bucket: Bucket) -> None:
    with pytest.raises(ConfigError, match=r"model\.path=s3://.*/nothing: no config\.json there"):
        local_model(f"{bucket.url}/nothing")


def test_all_that_read_a_model_take_its_url(url: str, tiny_model: Path, downloads: list[str]) -> None:
    """Processor, vLLM, the trainer's layout and the plan, which needs nothing but config.json."""
    assert find_model_config(url).model_type == "qwen2_5_vl"
    assert downloads == ["config.json"]
    config = make_config(url)
    assert config.model.path == url
    assert model_type(url) == "qwen2_5_vl"
    processor = open_processor(config)
    assert processor.banned_token_ids == open_processor(make_config(tiny_model)).banned_token_ids
    assert engine_arguments(config, [], {}, on_gpu=False)["model"] == local_model(url)
    assert dict(empty_model(config).named_parameters()).keys()
    assert find_model_config(url).model_type == "qwen2_5_vl"  # from the whole copy, now that there is one
    assert len(downloads) == 1 + len(contents(tiny_model))
