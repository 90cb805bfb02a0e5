"""`vlrl eval`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from vlrl.cli.shared import (
    ConfigArgument,
    DebugOption,
    JsonOption,
    OverridesArgument,
    print_result,
    read_config,
)
from vlrl.errors import ConfigError
from vlrl.tracking.console import TrainConsole


def command(
    config: ConfigArgument,
    overrides: OverridesArgument = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for every sample, a table and a page.", show_default=False)
    ] = None,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Measure held-out accuracy: `vlrl eval configs/quickstart.yaml model.path=runs/quickstart/model`.

    With --out FOLDER every answer is kept as soon as it is there: the same command again goes on where a
    killed one was. The folder then has samples.jsonl (as `vlrl rollout` writes it), table.csv (one line per
    sample), summary.json and samples.html.
    """
    loaded = read_config(config, overrides)
    if not loaded.data.eval:
        raise ConfigError(f"{config}: data.eval is not set; name the held-out rows there")

    from vlrl.cli.evaluation_files import write_evaluation
    from vlrl.cli.evaluation_table import evaluation_table
    from vlrl.evaluate import evaluate_model
    from vlrl.evaluation.kept import SAMPLES_FILE
    from vlrl.viewer.pages.report import write_rollout_report

    model = loaded.eval.endpoint.model if loaded.eval.endpoint else loaded.model.path
    with TrainConsole(f"evaluate {model}", 1, json_mode=json) as console:
        result = evaluate_model(loaded, console, out)
        summary: dict[str, Any] = {"model_path": loaded.model.path}
        if loaded.eval.endpoint is not None:
            summary = {"endpoint": loaded.eval.endpoint.base_url, "model": loaded.eval.endpoint.model}
        summary |= result.summary()
        if out is not None:
            write_evaluation(out, summary)
            page = write_rollout_report(out / SAMPLES_FILE)
            console.note(f"samples: {page}, {out / 'table.csv'}")
            summary["out"] = str(out)
    Console(stderr=json, highlight=False).print(evaluation_table(result))
    print_result(summary, json)
