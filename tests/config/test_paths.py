"""Folders of a config are absolute from the moment it is read, whichever process uses them later."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import make_config

from vlrl.config.section import Section


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def paths(section: Section) -> Iterator[Path]:
    """Every option that is a path, in all sections."""
    for _, value in section:
        if isinstance(value, Path):
            yield value
        if isinstance(value, Section):
            yield from paths(value)


def test_every_option_that_is_a_path_is_absolute(here: Path) -> None:
    config = make_config(
        run={"dir": "mine/runs", "name": "a"},
        weights={"transport": "disk", "folder": "weights"},
        trainer={"offload_parameters": True, "offload_dir": "swap"},
        vision_cache={"dir": "features"},
        media={"cache_dir": "media"},
    )
    assert config.run_dir == here / "mine" / "runs" / "a"
    assert config.weights.folder == here / "weights"
    assert config.trainer.offload_dir == here / "swap"
    assert config.vision_cache.dir == here / "features"
    assert config.media.cache_dir == here / "media"
    assert len(list(paths(config))) == 5
    assert all(path.is_absolute() for path in paths(config))


def test_a_default_is_of_the_folder_in_which_the_config_is_read(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of the one in which vlrl was imported: a notebook may change it in between."""
    assert make_config().run.dir == here / "runs"
    (here / "other").mkdir()
    monkeypatch.chdir(here / "other")
    assert make_config().run.dir == here / "other" / "runs"


def test_a_config_read_elsewhere_from_its_own_dump_is_the_same(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make_config("models/tiny", run={"dir": "a/../b"})
    assert first.run.dir == here / "a" / ".." / "b"  # a link at `a` would lead elsewhere
    monkeypatch.chdir("/")
    assert type(first).model_validate(first.model_dump(mode="json")) == first


def test_the_home_folder_is_spelled_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    config = make_config("~/models/tiny", run={"dir": "~/runs"})
    assert config.run.dir == tmp_path / "runs"
    assert config.model.path == f"{tmp_path}/models/tiny"


@pytest.mark.parametrize("path", ["./m", "../m", "m", "a/b/c", "runs/quickstart-init", "models/tiny"])
def test_a_model_s_folder_is_absolute_whether_it_is_there_yet_or_not(here: Path, path: str) -> None:
    assert make_config(path).model.path == str(here / path)


@pytest.mark.parametrize("path", ["Qwen/Qwen2.5-VL-3B-Instruct", "s3://bucket/a/model", "/data/model"])
def test_a_hub_name_a_url_and_an_absolute_folder_stay_as_they_are(here: Path, path: str) -> None:
    assert make_config(path).model.path == path


def test_what_looks_like_a_hub_name_is_a_folder_where_there_is_one(here: Path) -> None:
    (here / "my" / "model").mkdir(parents=True)
    assert make_config("my/model").model.path == str(here / "my" / "model")
