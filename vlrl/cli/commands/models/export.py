"""`vlrl export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vlrl.cli.shared import DebugOption, JsonOption, print_result


def command(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder to write; exports/RUN-STEP by default.", show_default=False)
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            help="A step whose weights are kept, or best: the highest greedy held-out accuracy of these. By "
            "default the end of the run.",
            show_default=False,
        ),
    ] = None,
    adapter: Annotated[
        bool,
        typer.Option(
            "--adapter/--merge-lora", help="The LoRA adapter alone, or the whole weights, which contain it."
        ),
    ] = False,
    push: Annotated[
        str | None, typer.Option(help="Also upload to this repository: NAMESPACE/NAME.", show_default=False)
    ] = None,
    private: Annotated[bool, typer.Option("--private/--public", help="Of a new repository.")] = True,
    max_shard_gib: Annotated[
        float, typer.Option("--max-shard-gib", min=0.0001, help="Largest file of weights, in GiB.")
    ] = 5.0,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Write a run's model as transformers, vLLM and hubs take it: `vlrl export runs/a --out models/a`.

    The folder has the weights in safetensors, the processor and chat template, and a model card with the
    recipe, the data's fingerprints, the curves, the held-out accuracy and some answers.
    """
    from vlrl.export.folder import export_run

    result = export_run(run, out, checkpoint=checkpoint, as_adapter=adapter, max_shard_gib=max_shard_gib)
    typer.echo(f"exported step {result['step']} of {run}: {result['folder']}", err=json)
    if push is not None:
        from vlrl.export.hub import push as upload

        folder = Path(result["folder"])
        result["pushed"] = upload(folder, push, private=private, message=f"{result['name']}, by vlrl export")
        typer.echo(f"pushed: {result['pushed']}", err=json)
    print_result(result, json)
