"""`vlrl quickstart`: the whole loop on a laptop, from random weights to a report."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vlrl.cli.commands.training.train import require_target
from vlrl.cli.shared import DebugOption, JsonOption, OverridesArgument, print_result, read_config
from vlrl.errors import ConfigError
from vlrl.run.lock import LOCK_FILE, require_unlocked
from vlrl.tracking.console import TrainConsole

if TYPE_CHECKING:
    from vlrl.config import Config

NUM_CORPUS_ROWS = 200


class QuickstartTask(StrEnum):
    """What the tiny model learns."""

    DIGITS = "digits"
    TURNS = "turns"
    GUI = "gui"
    LIGHTS = "lights"
    POLICIES = "policies"


CONFIGS = {
    QuickstartTask.DIGITS: "quickstart",
    QuickstartTask.TURNS: "quickstart_turns",
    QuickstartTask.GUI: "quickstart_gui",
    QuickstartTask.LIGHTS: "quickstart_lights",
    QuickstartTask.POLICIES: "quickstart_policies",
}
"""The config's name of each task; `<name>_sft` is its warm start."""


def command(
    overrides: OverridesArgument = None,
    seed: Annotated[int, typer.Option(help="Seed of weights, data order and sampling.")] = 0,
    task: Annotated[
        QuickstartTask,
        typer.Option(
            help="digits: add handwritten digits; turns: read them, one per turn; gui: click the odd button; "
            "lights: two buttons, one a turn; policies: a team of two adapters, a digit each."
        ),
    ] = QuickstartTask.DIGITS,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for everything; an earlier run there is replaced. By default under runs/."),
    ] = None,
    configs: Annotated[
        Path, typer.Option(help="Folder with quickstart.yaml, quickstart_sft.yaml and those of other tasks.")
    ] = Path("configs"),
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Train a tiny VLM with SFT, then GRPO, and write a report: `vlrl quickstart --seed 1`.

    Overrides apply to the SFT warm start too.
    """
    from vlrl.config.paths import absolute

    name = CONFIGS[task]
    out = absolute(out or Path("runs") / name)
    given = [*(overrides or ()), f"run.seed={seed}", f"run.dir={out.parent}"]
    warm = read_config(configs / f"{name}_sft.yaml", given)
    main = read_config(configs / f"{name}.yaml", given)
    warm = _placed(warm, f"{out.name}-sft", out.parent / f"{out.name}-init")
    main = _placed(main, out.name, warm.run_dir / "model")
    summary, report = run(warm, main, corpus_of(task, warm), json_mode=json)
    print_result({**summary, "report": str(report)}, json)
    require_target(summary)


def corpus_of(task: QuickstartTask, warm: Config) -> list[str]:
    """Texts to train the tiny model's tokenizer on: those of the rows that `warm` learns from."""
    if task is QuickstartTask.DIGITS:
        from vlrl.registry import resolve

        corpus: list[str] = resolve("datasets", "digit_sum")().corpus()
        return corpus
    from vlrl.data import open_source
    from vlrl.processors.messages import text_of

    rows = open_source(warm.data.train[0], "data.train")
    return [
        "\n".join([*(f"{m['role']}\n{text_of(m)}" for m in row["messages"]), f"assistant\n{row['target']}"])
        for row in islice(rows, NUM_CORPUS_ROWS)
    ]


def run(
    warm: Config, main: Config, corpus: Sequence[str], *, json_mode: bool
) -> tuple[dict[str, object], Path]:
    """SFT with `warm`, then GRPO with `main`, in one Ray, on a tiny model that spells `corpus` well."""
    for folder in (Path(warm.model.path), warm.run_dir, main.run_dir):
        _remove_run(folder)
    announced = TrainConsole("quickstart", warm.num_steps, json_mode=json_mode).announce()

    from vlrl import grpo, sft
    from vlrl.cluster import cluster
    from vlrl.model.tiny import build_tiny_qwen2_5_vl
    from vlrl.viewer.pages.report import write_report

    with announced as console:
        console.phase("building a tiny Qwen2.5-VL")
        build_tiny_qwen2_5_vl(warm.model.path, corpus, seed=warm.run.seed)
        with cluster(main):
            sft.train(warm, console)
            summary = grpo.train(main, console)
        report = write_report(main.run_dir)
        console.note(f"report: {report}")
    return summary, report


def _placed(config: Config, name: str, model_path: Path) -> Config:
    return config.model_copy(
        update={
            "run": config.run.model_copy(update={"name": name}),
            "model": config.model.model_copy(update={"path": str(model_path)}),
        }
    )


def _remove_run(folder: Path) -> None:
    """Remove an earlier quickstart's folder, and nothing that is not one."""
    known = {"config.yaml", "config.json", "checkpoints", "metrics.jsonl", LOCK_FILE}
    if folder.exists() and any(folder.iterdir()) and not known & {p.name for p in folder.iterdir()}:
        raise ConfigError(f"{folder} exists and is not an earlier run; choose another --out")
    require_unlocked(folder)
    shutil.rmtree(folder, ignore_errors=True)
