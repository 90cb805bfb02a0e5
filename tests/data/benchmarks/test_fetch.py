"""`vlrl data get` at a hub on this machine: licence first, checksums, resumption, and no hub at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from dataset_hub import COMMIT, Hub, serve
from huggingface_hub import constants
from typer.testing import CliRunner

from vlrl.cli.app import app
from vlrl.data.benchmarks.fetch import RECORD, fetch
from vlrl.data.benchmarks.published import PUBLISHED
from vlrl.errors import ConfigError, DataError
from vlrl.registry import available

BIG = bytes(range(256)) * 4000


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    files = {"data/test-0.parquet": BIG, "data/val-0.parquet": b"small", "README.md": b"a card"}
    with serve(Hub("lmms-lab/ChartQA", files)) as served:
        monkeypatch.setenv("HF_ENDPOINT", served.endpoint)
        yield served


def test_files_come_with_licence_revision_and_checksums(hub: Hub, tmp_path: Path) -> None:
    told: list[str] = []
    found = fetch("chartqa", tmp_path / "c", tell=told.append)
    assert (tmp_path / "c" / "data" / "test-0.parquet").read_bytes() == BIG
    assert (tmp_path / "c" / "data" / "val-0.parquet").read_bytes() == b"small"
    assert {path.name for path in (tmp_path / "c").iterdir()} <= {"data", RECORD, ".cache"}
    assert told[0] == f"chartqa: lmms-lab/ChartQA at {COMMIT}, 2 files, 1.0 MiB"
    assert "licence: gpl-3.0" in told[1]
    assert json.loads((tmp_path / "c" / RECORD).read_text()) == found
    assert found["revision"] == COMMIT
    hub.fetched.clear()
    assert fetch("chartqa", tmp_path / "c") == found
    assert not hub.fetched  # what is there and right is not fetched again
    (tmp_path / "c" / "data" / "val-0.parquet").write_bytes(b"Small")
    fetch("chartqa", tmp_path / "c")
    assert hub.fetched == [("data/val-0.parquet", 0)]
    assert (tmp_path / "c" / "data" / "val-0.parquet").read_bytes() == b"small"


def test_a_download_that_is_cut_off_goes_on_where_it_was(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 10_000)  # 10 MB at a time otherwise
    hub.cut_after = 500_000
    fetch("chartqa", tmp_path, only=["data/test-*"])
    assert hub.fetched == [("data/test-0.parquet", 0), ("data/test-0.parquet", 500_000)]
    assert (tmp_path / "data" / "test-0.parquet").read_bytes() == BIG


def test_what_the_hub_does_not_name_is_not_kept(hub: Hub, tmp_path: Path) -> None:
    hub.tampered.add("data/test-0.parquet")
    with pytest.raises(DataError, match=r"test-0\.parquet is not what the hub names .* was deleted"):
        fetch("chartqa", tmp_path)
    assert not (tmp_path / "data" / "test-0.parquet").exists()
    with pytest.raises(ConfigError, match=r"has no files train-\* at main"):
        fetch("chartqa", tmp_path, only=["train-*"])


def test_the_command_shows_where_it_has_put_them(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["data", "get", "chartqa", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["license"] == "gpl-3.0"
    assert (tmp_path / "data" / "chartqa" / "data" / "test-0.parquet").is_file()


def test_without_a_hub_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(DataError, match=r"127\.0\.0\.1:9 cannot be reached .*hf download lmms-lab/ChartQA"):
        fetch("chartqa", tmp_path)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(DataError, match=r"cannot be reached .*[Oo]ffline"):
        fetch("chartqa", tmp_path)
    with pytest.raises(DataError, match="charades_sta is on no hub: fetch it from https://"):
        fetch("charades_sta", tmp_path)
    with pytest.raises(ConfigError, match="there is no benchmark 'chart'"):
        fetch("chart", tmp_path)


def test_every_benchmark_says_where_it_is_published() -> None:
    ours = {
        n for n, target in available("datasets").items() if ".benchmarks." in target or ".datasets." in target
    }
    assert ours | {"screenspot"} == set(PUBLISHED)
