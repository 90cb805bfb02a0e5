"""`vlrl serve`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from vlrl.cli.shared import DebugOption, JsonOption, print_result
from vlrl.errors import ConfigError


def command(
    model: Annotated[
        str, typer.Argument(help="An exported folder, a run's folder (its model), or a hub name.")
    ],
    vllm_options: Annotated[
        list[str] | None,
        typer.Argument(help="After --: options of vLLM's own server.", metavar="[-- OPTION…]"),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address; any but this machine's own needs VLRL_SERVE_TOKEN.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port.")] = 8000,
    max_images: Annotated[int, typer.Option(min=0, help="Most images of a request.")] = 8,
    max_pixels: Annotated[
        int | None,
        typer.Option(
            min=784, help="Larger images are shrunk to this; as in training by default.", show_default=False
        ),
    ] = None,
    max_model_len: Annotated[
        int | None,
        typer.Option(
            min=64, help="Most tokens of prompt and answer; as in training by default.", show_default=False
        ),
    ] = None,
    timeout_s: Annotated[
        float, typer.Option("--timeout-s", min=0.1, help="Longest answer, in seconds.")
    ] = 300.0,
    max_body_mib: Annotated[int, typer.Option("--max-body-mib", min=1, help="Longest request.")] = 64,
    replicas: Annotated[
        int | None,
        typer.Option(min=1, help="So many servers behind one address, by Ray Serve.", show_default=False),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            help="Cluster for --replicas (auto: the running one); they stay there.", show_default=False
        ),
    ] = None,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Serve a model by OpenAI's API, with vLLM: `vlrl serve models/digits --port 8000`.

    Greedy answers (temperature 0) are those of `vlrl eval`: images, prompt, stop tokens and dtype are the
    run's. With the environment variable VLRL_SERVE_TOKEN clients must give it as their API key.

    With --replicas, servers that die are replaced and their requests sent to others. SIGHUP replaces them one
    by one by what MODEL is then; with --ray, the same command again does, also with another MODEL.
    """
    from vlrl.engine.api.arguments import become_server, has_gpu, require_vllm
    from vlrl.engine.api.options import TOKEN_VARIABLE, ModelServerOptions
    from vlrl.engine.api.servers import keep_replicas, served
    from vlrl.environment.listening import require_secret
    from vlrl.export.served import served_config

    if ray is not None and replicas is None:
        raise ConfigError("--ray is for --replicas; give both, or neither")
    require_vllm()
    require_secret(host, os.environ.get(TOKEN_VARIABLE, ""), f"set {TOKEN_VARIABLE} to a secret")

    def options() -> ModelServerOptions:
        name, config = served_config(model)
        if max_pixels is not None:
            config.setdefault("processor", {})["max_pixels"] = max_pixels
        if max_model_len is not None:
            config.setdefault("generator", {})["max_model_len"] = max_model_len
            config["trainer"] = {"max_tokens_per_micro_batch": max(4096, max_model_len)}
        return ModelServerOptions(name, config, max_images, timeout_s, max_body_mib)

    url = f"http://{host}:{port}/v1"

    def ready() -> None:
        typer.echo(f"{options().name} at {url}", err=True)

    extra = tuple(vllm_options or ())
    print_result({"model": options().name, "url": url}, json)
    if replicas is None:
        ready()
        arguments, environment = served(options(), extra, on_gpu=has_gpu())
        become_server([*arguments, "--host", host, "--port", str(port)], {**os.environ, **environment})
    else:
        place = (host, port)
        keep_replicas(options, extra, num_replicas=replicas, place=place, address=ray, on_ready=ready)
