"""`vlrl init`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vlrl.cli.shared import DebugOption, JsonOption, print_result


def command(
    data: Annotated[str, typer.Argument(help="Rows: a file, a folder or a name, as in data.train.")],
    model: Annotated[str, typer.Argument(help="A hub name or a folder.")],
    out: Annotated[Path, typer.Option(help="The config to write.")] = Path("my.yaml"),
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Write a short config for your rows and a model: `vlrl init rows.jsonl Qwen/Qwen2.5-VL-3B-Instruct`.

    The first rows say which reward fits and how long prompts are; a prediction says what fits the machine.
    """
    from vlrl.cli.starter import write_starter

    look, config = write_starter(data, model, out)
    typer.echo(f"wrote {out}: reward {look.reward}, because {look.why}", err=json)
    next_ = [f"vlrl {what} {out}" for what in ("data check", "plan", "train")]
    for each in next_:
        typer.echo(f"  {each}", err=json)
    lora = config.lora is not None
    print_result(
        {"path": str(out), "reward": look.reward, "why": look.why, "lora": lora, "next": next_}, json
    )
