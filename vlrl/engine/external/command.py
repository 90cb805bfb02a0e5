"""How `vlrl engine` starts a server: vLLM's own, with the arguments of a run's engines."""

from __future__ import annotations

from vlrl.config import Config
from vlrl.engine.api.arguments import command_line, environment_of
from vlrl.engine.arguments import engine_arguments, model_has_state
from vlrl.errors import ConfigError
from vlrl.processors.auto import open_processor

NOT_FLAGS = ("trust_remote_code", "disable_log_stats")
"""Arguments whose options differ from their names: the first is added by `command_line`."""
MIDDLEWARE = "vlrl.engine.api.middleware.TokenGuard"


def engine_command(config: Config, *, on_gpu: bool) -> list[str]:
    """The command line of an engine's server, but for its address.

    Args:
        config: of the training run.
        on_gpu: whether it runs on GPUs.

    Raises:
        ConfigError: if there is no such model, or a CPU's engine would need what servers do not have.
    """
    has_state = model_has_state(config)
    if has_state and not on_gpu and config.model.dtype == "float32":
        raise ConfigError(
            f"{config.model.path} has layers with a state, whose products in float32 on a CPU vLLM's server "
            "lacks; leave generator.servers out, and an engine of the run computes them"
        )
    processor = open_processor(config)
    arguments = engine_arguments(
        config, processor.banned_token_ids, processor.engine_options, on_gpu=on_gpu, has_state=has_state
    )
    kept = {name: value for name, value in arguments.items() if name not in NOT_FLAGS}
    # vLLM's cache of prepared images loses count when a request is given up before it was computed.
    kept |= {"middleware": MIDDLEWARE, "mm_processor_cache_gb": 0, "disable_uvicorn_access_log": True}
    kept |= {"enable_scale_out": True}  # tokens in, tokens out
    return command_line(config, kept)


def engine_variables(config: Config, *, on_gpu: bool) -> dict[str, str]:
    """Variables of the server's process; the development mode has the calls that replace weights."""
    return {**environment_of(config, on_gpu=on_gpu), "VLLM_SERVER_DEV_MODE": "1"}
