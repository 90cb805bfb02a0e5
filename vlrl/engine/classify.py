"""A reward model on an engine of its own: vLLM's server of a sequence classifier, which answers /classify."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vlrl.errors import ConfigError

QWEN_SIZES = {"images_kwargs": {"min_pixels": 28 * 28}}
"""Images come as vlrl has resized them, which Qwen's own least size would undo: 256² pixels of Qwen3-VL."""


def serve_arguments(folder: Path, host: str, port: int, extra: Sequence[str] = ()) -> list[str]:
    """The command line of a reward model's server.

    Args:
        folder: RUN/model of `vlrl reward-model`, or of another sequence classifier.
        host: address to listen at.
        port: likewise.
        extra: options of vLLM's own, which come last and win.

    Raises:
        ConfigError: if the folder holds no sequence classifier.
    """
    path = folder / "config.json"
    if not path.is_file():
        raise ConfigError(f"{folder} has no config.json; give the folder RUN/model of `vlrl reward-model`")
    config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    architectures = config.get("architectures") or ["none"]
    if not architectures[0].endswith("ForSequenceClassification"):
        raise ConfigError(
            f"{folder} holds a {architectures[0]}, not a sequence classifier; train one with `vlrl "
            "reward-model`"
        )
    sizes = ("--mm-processor-kwargs", json.dumps(QWEN_SIZES))
    return [
        *(sys.executable, "-m", "vllm.entrypoints.openai.api_server"),
        *("--model", str(folder), "--served-model-name", str(folder)),
        *("--runner", "pooling", "--host", host, "--port", str(port)),
        *(sizes if str(config.get("model_type")).startswith("qwen") else ()),
        *extra,
    ]


def serve(arguments: Sequence[str]) -> None:
    """Become the server: this process is replaced, so that a signal to it reaches vLLM. It logs to stderr."""
    sys.stdout.flush()
    os.dup2(sys.stderr.fileno(), 1)
    env = {"VLLM_NO_USAGE_STATS": "1", **os.environ}
    os.execve(arguments[0], list(arguments), env)
