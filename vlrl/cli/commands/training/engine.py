"""`vlrl engine`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from vlrl.cli.shared import (
    ConfigArgument,
    DebugOption,
    JsonOption,
    OverridesArgument,
    print_result,
    read_config,
)


def command(
    config: ConfigArgument,
    overrides: OverridesArgument = None,
    host: Annotated[
        str, typer.Option(help="Address; any but this machine's own needs VLRL_SERVE_TOKEN.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port.")] = 8000,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Start an engine for training runs elsewhere: `vlrl engine CONFIG --port 8001`.

    It is vLLM's server with the arguments of the config's engines. A run of the same config uses it with
    generator.servers='[http://HOST:8001]', one run at a time, and sends it its weights. With the environment
    variable VLRL_SERVE_TOKEN both must have it.
    """
    from vlrl.engine.api.arguments import become_server, has_gpu, require_vllm
    from vlrl.engine.api.options import TOKEN_VARIABLE
    from vlrl.engine.external.command import engine_command, engine_variables
    from vlrl.environment.listening import require_secret

    require_vllm()
    require_secret(host, os.environ.get(TOKEN_VARIABLE, ""), f"set {TOKEN_VARIABLE} to a secret")
    parsed, on_gpu = read_config(config, overrides), has_gpu()
    arguments = engine_command(parsed, on_gpu=on_gpu)
    print_result({"model": parsed.model.path, "url": f"http://{host}:{port}"}, json)
    become_server(
        [*arguments, "--host", host, "--port", str(port)],
        {**os.environ, **engine_variables(parsed, on_gpu=on_gpu)},
    )
