"""The command line of a reward model's server, and folders that hold none."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from vlrl.engine.classify import serve_arguments
from vlrl.errors import ConfigError


def folder_of(path: Path, architecture: str, model_type: str) -> Path:
    (path / "config.json").write_text(json.dumps({"architectures": [architecture], "model_type": model_type}))
    return path


def test_the_servers_command_line(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "Qwen2_5_VLForSequenceClassification", "qwen2_5_vl")
    python, _, module, *options = serve_arguments(folder, "127.0.0.1", 8001, ["--dtype", "float32"])
    assert python == sys.executable and module.startswith("vllm.")
    pairs = dict(zip(options[::2], options[1::2], strict=True))
    assert pairs["--model"] == pairs["--served-model-name"] == str(folder)
    assert (pairs["--runner"], pairs["--host"], pairs["--port"]) == ("pooling", "127.0.0.1", "8001")
    assert json.loads(pairs["--mm-processor-kwargs"]) == {"images_kwargs": {"min_pixels": 784}}
    assert options[-2:] == ["--dtype", "float32"]


def test_families_that_cut_images_into_tiles_keep_their_sizes(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "InternVLForSequenceClassification", "internvl")
    assert "--mm-processor-kwargs" not in serve_arguments(folder, "127.0.0.1", 8001)


def test_a_folder_without_a_classifier_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no config\.json; give the folder RUN/model"):
        serve_arguments(tmp_path, "127.0.0.1", 8001)
    policy = folder_of(tmp_path, "Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl")
    with pytest.raises(ConfigError, match="not a sequence classifier; train one with `vlrl reward-model`"):
        serve_arguments(policy, "127.0.0.1", 8001)
