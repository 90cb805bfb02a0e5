"""Bad input: one message with thing, place and remedy, a non-zero exit, nothing half-written, no engine."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
import yaml
from builders import random_image
from checkpoint_files import write_least
from object_store import Bucket
from PIL import Image

from vlrl.run.checkpoint import RunState, save_checkpoint
from vlrl.run.lock import LOCK_FILE
from vlrl.run.manifest import add_digests


@pytest.fixture(autouse=True)
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of this must be told before Ray, let alone an engine, is started."""

    def refuse(**_: object) -> None:
        raise AssertionError("Ray was started")

    monkeypatch.setattr(ray, "init", refuse)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)


@pytest.fixture
def tree(tiny_model: Path) -> dict[str, Any]:
    """A config that would train."""
    return {
        "run": {"name": "a"},
        "model": {"path": str(tiny_model)},
        "data": {"train": {"name": "digit_sum"}},
        "rewards": [{"name": "answer_exact"}],
        "rollout": {"prompts_per_step": 2, "group_size": 2, "max_tokens": 8},
        "generator": {"max_model_len": 256},
    }


Fails = Callable[..., str]


@pytest.fixture
def fails(vlrl: Any, tree: dict[str, Any], tmp_path: Path) -> Fails:
    """`fails(code, kind, "num_steps=3", command="sft")`: the message of a command that must fail."""

    def run(code: int, kind: str, *arguments: object, command: str = "train") -> str:
        file = tmp_path / "run.yaml"
        file.write_text(yaml.safe_dump(tree))
        result = vlrl(command, file, *arguments, "--json")
        message = str(result.json["error"])
        assert (result.code, result.json["kind"]) == (code, kind), message
        assert f"error: {message}\n" in result.err
        assert "Traceback" not in result.err + message
        assert not list(tmp_path.rglob(".*.partial"))
        return message

    return run


def write_rows(folder: Path, *images: Path | str) -> Path:
    """A dataset of one row for each image."""
    lines = [
        json.dumps(
            {
                "messages": [{"role": "user", "content": [{"type": "image", "image": str(image)}]}],
                "answer": "1",
            }
        )
        for image in images
    ]
    path = folder / "rows.jsonl"
    path.write_text("".join(line + "\n" for line in lines))
    return path


def test_no_config_file(vlrl: Any) -> None:
    result = vlrl("train", "nope.yaml")
    assert result.code == 2
    assert result.err == "error: config file nope.yaml does not exist\n"


def test_a_key_with_a_typo(fails: Fails) -> None:
    assert "unknown key 'optim.lrr'; did you mean 'optim.lr'?" in fails(2, "ConfigError", "optim.lrr=1e-3")


def test_a_wrong_value(fails: Fails) -> None:
    message = fails(2, "ConfigError", "rollout.group_size=0")
    assert "rollout.group_size: Input should be greater than or equal to 1 (got 0)" in message


def test_an_override_without_a_value(fails: Fails) -> None:
    assert "override 'model.path' must look like section.key=value" in fails(2, "ConfigError", "model.path")


@pytest.mark.parametrize("command", ["train", "sft", "eval", "rollout"])
@pytest.mark.parametrize("path", ["./gone", "runs/gone/model", "/nowhere/model"])
def test_no_model_folder(fails: Fails, command: str, path: str) -> None:
    data = ["data.eval.name=digit_sum"]
    message = fails(2, "ConfigError", f"model.path={path}", *data, command=command)
    assert message == f"model.path='{Path.cwd() / path}' does not exist"


def test_a_folder_without_a_model(fails: Fails, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "is a folder without a config.json" in fails(2, "ConfigError", f"model.path={tmp_path}/empty")
    (tmp_path / "empty" / "config.json").write_text("{")
    assert "config.json cannot be read" in fails(2, "ConfigError", f"model.path={tmp_path}/empty")
    (tmp_path / "empty" / "config.json").write_text('{"model_type": "bert"}')
    message = fails(2, "ConfigError", f"model.path={tmp_path}/empty")
    assert "type 'bert', for which no processor is registered (known: " in message


@pytest.mark.parametrize(
    ("model_type", "instead"),
    [
        ("gemma3", "Gemma 4"),
        ("internvl_chat", "the model whose name ends in -HF"),
        ("kimi_k25", "Qwen3.5"),
        ("kimi_vl", "Qwen3-VL"),
        ("llava", "LLaVA-NeXT, or Mistral Small 3.1 for Pixtral"),
        ("minicpmo", "MiniCPM-V 4.6"),
        ("minicpmv", "MiniCPM-V 4.6"),
        ("phi4_multimodal", "Qwen3-VL"),
        ("phi4mm", "Qwen3-VL"),
        ("qwen3_omni_moe", "Qwen2.5-Omni"),
    ],
)
def test_a_model_that_vlrl_does_not_train(
    fails: Fails, tmp_path: Path, model_type: str, instead: str
) -> None:
    """The folder's own code, where there is some, is not run to find that out."""
    written = {"model_type": model_type, "auto_map": {"AutoConfig": "configuration_own.OwnConfig"}}
    (tmp_path / "config.json").write_text(json.dumps(written))
    message = fails(2, "ConfigError", f"model.path={tmp_path}")
    assert f"is of type '{model_type}': " in message and message.endswith(f": take {instead}")


def test_a_hub_model_offline(fails: Fails) -> None:
    begin = time.perf_counter()
    message = fails(2, "ConfigError", "model.path=Qwen/No-Such-Model")
    assert "neither a folder nor in the Hugging Face cache, and HF_HUB_OFFLINE is set" in message
    assert time.perf_counter() - begin < 25


def test_a_hub_model_without_a_network(fails: Fails, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said at once: a download would try again for half a minute, once for each of several files."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    begin = time.perf_counter()
    message = fails(2, "ConfigError", "model.path=Qwen/No-Such-Model")
    assert "is not a folder, and https://huggingface.co cannot be reached" in message
    assert time.perf_counter() - begin < 25


def test_an_unknown_reward_dataset_or_processor(fails: Fails) -> None:
    message = fails(2, "ConfigError", "rewards.0.name=answer_exakt")
    assert message.startswith("no reward is named 'answer_exakt'; did you mean 'answer_exact'?")
    message = fails(2, "ConfigError", "data.train.name=digits_sum")
    assert message.startswith("no dataset is named 'digits_sum'; did you mean 'digit_sum'?")
    message = fails(2, "ConfigError", "processor.name=qwen2_5vl")
    assert message.startswith("no processor is named 'qwen2_5vl'; did you mean 'qwen2_5_vl'?")
    assert "rewards is empty; give at least one" in fails(2, "ConfigError", "rewards=[]")


def test_no_dataset_file(fails: Fails) -> None:
    assert "dataset file rows.jsonl does not exist" in fails(
        2, "DatasetMissing", "data.train.name=rows.jsonl"
    )


def test_an_empty_dataset(fails: Fails, tmp_path: Path) -> None:
    rows = write_rows(tmp_path)
    assert f"data.train: dataset '{rows}' is empty" in fails(1, "DataError", f"data.train.name={rows}")
    message = fails(1, "DataError", f"data.eval.name={rows}")
    assert f"data.eval: dataset '{rows}' is empty" in message


def test_a_missing_image(fails: Fails, tmp_path: Path) -> None:
    message = fails(1, "DataError", f"data.train.name={write_rows(tmp_path, 'gone.png')}")
    assert (
        f"media files are missing: sample 'rows.jsonl:1': '{tmp_path}/gone.png'; check the paths" in message
    )


def test_a_missing_held_out_image_too_before_engines_are_asked_to_answer(
    fails: Fails, tmp_path: Path
) -> None:
    rows = f"data.eval.name={write_rows(tmp_path, 'gone.png')}"
    for command in ("eval", "train"):
        message = fails(1, "DataError", rows, command=command)
        assert f"media files are missing: sample 'rows.jsonl:1': '{tmp_path}/gone.png'" in message


def test_a_truncated_image(fails: Fails, tmp_path: Path) -> None:
    whole = tmp_path / "whole.png"
    Image.fromarray(random_image(56, 56)).save(whole)
    cut = tmp_path / "cut.png"
    cut.write_bytes(whole.read_bytes()[:2000])
    message = fails(1, "DataError", f"data.train.name={write_rows(tmp_path, cut)}")
    assert f"sample 'rows.jsonl:1': '{cut}' is broken: " in message
    assert message.endswith("replace the file or drop the row")
    cut.write_bytes(b"not an image")
    assert "is not an image" in fails(1, "DataError", f"data.train.name={write_rows(tmp_path, cut)}")


def test_a_row_without_a_target_cannot_be_supervised(fails: Fails, tmp_path: Path) -> None:
    whole = tmp_path / "whole.png"
    Image.fromarray(random_image(56, 56)).save(whole)
    message = fails(1, "DataError", f"data.train.name={write_rows(tmp_path, whole)}", command="sft")
    assert message.startswith("sample 'rows.jsonl:1' has no 'target'")


def test_a_port_in_use(fails: Fails) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        message = fails(1, "ResourceError", f"trainer.master_port={port}")
    assert f"trainer.master_port={port} is in use" in message
    assert "give another, or null" in message


def test_too_little_shared_memory(fails: Fails, tmp_path: Path) -> None:
    gib = 1 + shutil.disk_usage("/dev/shm").total // 2**30
    message = fails(1, "ResourceError", f"ray.object_store_gib={gib}", "run.check_memory=skip")
    assert f"ray.object_store_gib={gib}" in message
    assert "/dev/shm has " in message
    assert "--shm-size" in message
    assert not (tmp_path / "runs" / "a" / "checkpoints").exists()


def files(folder: Path) -> dict[str, bytes]:
    """Every file below with its content, but for the lock, which is empty when nobody holds it."""
    found = {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    assert found.pop(str(folder / LOCK_FILE), b"") == b""
    return found


@pytest.fixture
def earlier(tmp_path: Path) -> Iterator[Path]:
    """The folder of an earlier run of that name, of seed 0 and two ranks; it must be left as it was."""
    run_dir = tmp_path / "runs" / "a"
    add_digests(save_checkpoint(run_dir, RunState(5, 0, 2), write_least, keep=1))
    before = files(run_dir)
    yield run_dir
    assert files(run_dir) == before


def test_an_earlier_run_is_not_overwritten(fails: Fails, earlier: Path) -> None:
    for command in ("train", "sft"):
        message = fails(2, "ConfigError", command=command)
        assert message.startswith(f"{earlier} holds an earlier run; continue with --resume")


def test_resume_needs_a_checkpoint(fails: Fails, tmp_path: Path) -> None:
    message = fails(2, "ConfigError", "--resume")
    assert message == f"--resume: no checkpoint under {tmp_path}/runs/a/checkpoints; run without --resume"


def test_resume_needs_the_same_seed_and_with_states_in_8_bit_the_same_ranks(
    fails: Fails, earlier: Path
) -> None:
    message = fails(2, "ConfigError", "--resume", "run.seed=3", "trainer.num_ranks=2")
    assert "run.seed=0, the config says 3" in message
    message = fails(2, "ConfigError", "--resume", "optim.state=8bit", "trainer.num_ranks=1")
    assert "trainer.num_ranks=2, the config says 1: with optim.state=8bit" in message


@pytest.mark.parametrize("command", ["train", "sft"])
@pytest.mark.parametrize("wrong", ["bucket", "address"])
def test_a_bucket_that_cannot_be_written(
    fails: Fails,
    bucket: Bucket,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    wrong: str,
) -> None:
    url, remedy = f"{bucket.url}/runs", "check the network, and AWS_ENDPOINT_URL of an S3 not Amazon's"
    if wrong == "address":
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    else:
        url = f"{bucket.url}-that-is-not-there/runs"
        remedy = "there is no such bucket or folder: make it, or correct the URL"
    message = fails(1, "ResourceError", f"checkpoint.upload_to={url}", command=command)
    assert message.startswith(f"checkpoint.upload_to: host {socket.gethostname()} could not write {url}/a/")
    assert message.endswith(remedy)
    assert not (tmp_path / "runs" / "a" / "metrics.jsonl").exists()


def test_a_model_s_url_without_a_model(fails: Fails, bucket: Bucket) -> None:
    message = fails(2, "ConfigError", f"model.path={bucket.url}/model")
    assert message.endswith("no config.json there; give a folder in Hugging Face format")


def test_a_run_folder_that_cannot_be_made(fails: Fails, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert f"{tmp_path}/file/a: Not a directory" in fails(1, "ResourceError", f"run.dir={tmp_path}/file")


def test_nothing_held_out(fails: Fails) -> None:
    assert "data.eval is not set" in fails(2, "ConfigError", command="eval")


def test_no_run_to_report_on(vlrl: Any, tmp_path: Path) -> None:
    result = vlrl("report", tmp_path)
    assert result.code == 2
    assert "is not a run's folder: it has no metrics.jsonl" in result.err


def test_the_same_as_a_program(tmp_path: Path) -> None:
    """Once through a real process: stdout is the JSON alone, stderr the one message."""
    child = subprocess.run(
        [sys.executable, "-c", "from vlrl.cli.main import main; main()", "train", "nope.yaml", "--json"],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert child.returncode == 2
    assert json.loads(child.stdout) == {
        "error": "config file nope.yaml does not exist",
        "kind": "ConfigError",
    }
    assert child.stderr == "error: config file nope.yaml does not exist\n"
