"""Held-out success of tiny GUI agents before and after GRPO, on each backend, from demonstrations on.

    python benchmarks/gui_learning.py --cases miniwob x11 lights_plain lights_branching --seeds 0 1 2

The environment's oracle plays demonstrations (`vlrl env demos`). For each seed a tiny Qwen2.5-VL with random
weights learns from them until its loss is that of the case (`vlrl sft`), and GRPO trains it on other episodes
of the same tasks (`vlrl train`). Held-out episodes, whose seeds neither saw, are played every --every steps,
sampled at temperature 1 and greedily. `tokens` are those that training had generated. Cases with one warm
start compare what GRPO does with it: lights_plain and lights_branching differ in episodes.branching alone
(`vlrl quickstart --task lights` has credit by turn).
Results lie under --out, a JSON file each; a run that has one is not repeated. Nothing is timed.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from learning_runs import quickstart_config, train_evaluated, warmed_up, without_extras

from vlrl.cli.commands.quickstart import QuickstartTask, corpus_of
from vlrl.config import Config
from vlrl.env_play.demonstrations import FILE, demonstrate
from vlrl.process.json_stdout import parse_with_json, print_json

SAMPLED, GREEDY = "heldout/accuracy_sampled", "heldout/accuracy_greedy"


@dataclass(frozen=True)
class Case:
    """What a small agent learns.

    Attributes:
        env: name of the environment.
        options: its own.
        warm: name of the warm start, which cases with the same tasks share.
        until_loss: of the supervised run, in nats a token.
        image_pixels: least and most of an image, which `shown_size` has to lie between.
        train: further options of the GRPO run.
    """

    env: str
    options: Mapping[str, Any]
    warm: str
    until_loss: float
    image_pixels: tuple[int, int] = (9408, 9408)
    num_demonstrations: int = 1000
    train: Mapping[str, Any] = field(default_factory=dict)


LIGHTS = partial(
    Case,
    "gui/emu",
    quickstart_config("quickstart_lights.yaml", {}).data.train[0].options["options"],
    "lights",
    0.36,
)
TWO_TURNS = {"episodes.max_turns": 2, "rewards": "[{name: success}, {name: episode_return}]"}
CASES: dict[str, Case] = {
    "lights_plain": LIGHTS(train=TWO_TURNS),
    "lights_branching": LIGHTS(
        train={**TWO_TURNS, "episodes.branching": "{num_branches: 4, at: 1}"},
    ),
    "miniwob": Case(
        "gui/miniwob",
        {
            **{"tasks": "click-dialog-2", "scale": 1, "observe": "tree"},
            "instructions": "Act by <action>click [N]</action>.",
        },
        "miniwob",
        0.35,
        num_demonstrations=500,
        # a browser has a page for each episode at once, and opening one is most of what it does
        train={
            **{"env.isolation": "thread", "episodes.max_episodes": 16, "episodes.max_turns": 1},
            **{"rollout.prompts_per_step": 8, "optim.lr": 1e-3, "algorithm.kl_coef": 0.01},
        },
    ),
    "x11": Case(
        "gui/x11",
        {
            **{"tasks": "many_make_executable", "difficulty": 1},
            **{"size": [640, 480], "theme": "classic", "shown_size": [112, 84]},
            "instructions": "Act by <action>open APP</action> or <action>type TEXT</action>.",
        },
        "x11",
        0.25,
        num_demonstrations=200,
        train={
            **{"env.isolation": "thread", "episodes.max_episodes": 6, "episodes.max_turns": 2},
            **{"rollout.prompts_per_step": 8, "rollout.max_tokens": 24, "optim.lr": 1e-3},
            "algorithm.kl_coef": 0.01,
        },
    ),
}


def rows_of(case: Case, out: Path) -> Path:
    """The file of the oracle's episodes, played if they are not there."""
    folder = out / f"demonstrations-{case.warm}"
    if not (folder / FILE).is_file():
        part = folder.with_name(f"{folder.name}.part")  # a folder of this name is whole
        shutil.rmtree(part, ignore_errors=True)
        demonstrate(case.env, case.options, {}, num=case.num_demonstrations, folder=part)
        part.rename(folder)
    return folder / FILE


def warm_start(case: Case, seed: int, args: argparse.Namespace) -> Path:
    """The model that knows how an action is written and roughly where: made once for a seed."""
    rows = rows_of(case, args.out)
    least, most = case.image_pixels
    overrides = {
        **{"run.seed": seed, "run.dir": args.out, "run.name": f"warm-{case.warm}-{seed}"},
        "model.path": args.out / f"init-{case.warm}-{seed}",
        "processor": f"{{min_pixels: {least}, max_pixels: {most}}}",
        "data.train": json.dumps({"name": str(rows)}),
        "sft.until_loss": case.until_loss,
        "sft.train_on": "assistant",
        "logging.tensorboard": "false",
    }
    config = quickstart_config("quickstart_gui_sft.yaml", overrides)
    corpus = partial(corpus_of, QuickstartTask.GUI, config)
    return warmed_up(config, corpus, json_mode=args.json)


def config_of(name: str, seed: int, model: Path, args: argparse.Namespace) -> Config:
    """The GRPO run of a case: the quickstart's on a desktop, on the case's own environment."""
    case = CASES[name]
    least, most = case.image_pixels
    rows = {"env": case.env, "options": dict(case.options), "num_rows": 8192}
    held_out = {**rows, "num_rows": args.heldout, "split": "heldout"}
    overrides = {
        **{"run.seed": seed, "run.dir": args.out, "run.name": f"{name}-{seed}"},
        "model.path": model,
        "processor": f"{{min_pixels: {least}, max_pixels: {most}}}",
        "data.train": json.dumps({"name": "env", "options": rows}),
        "data.eval": json.dumps({"name": "env", "options": held_out}),
        "num_steps": args.steps,
        **case.train,
    }
    return quickstart_config("quickstart_gui.yaml", without_extras(overrides))


def result_of(name: str, seed: int, args: argparse.Namespace) -> dict[str, Any]:
    """A run's result, made if there is none."""
    path = args.out / f"{name}-{seed}.json"
    if not path.is_file():
        model = warm_start(CASES[name], seed, args)
        evaluations = train_evaluated(
            config_of(name, seed, model, args),
            every=args.every,
            until=lambda evaluation: False,
            json_mode=args.json,
        )
        path.write_text(
            json.dumps({"case": name, "seed": seed, "evaluations": evaluations}), encoding="utf-8"
        )
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def main() -> None:
    """Run what has no result, print a line a run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", nargs="+", choices=CASES, default=["miniwob", "x11"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=300, help="most steps of a run")
    parser.add_argument("--every", type=int, default=50, help="steps between evaluations")
    parser.add_argument("--heldout", type=int, default=256, help="held-out episodes")
    parser.add_argument("--out", type=Path, default=Path("runs/gui_learning"))
    args = parse_with_json(parser)
    args.out = args.out.absolute()
    results = [result_of(name, seed, args) for seed in args.seeds for name in args.cases]
    for result in results:
        first, last = result["evaluations"][0], result["evaluations"][-1]
        print(
            f"seed {result['seed']}  {result['case']:18s} "
            f"sampled {first[SAMPLED]:.3f} → {last[SAMPLED]:.3f}  "
            f"greedy {first[GREEDY]:.3f} → {last[GREEDY]:.3f}  "
            f"{last['step']} steps, {last['num_tokens']:,} tokens"
        )
    if args.json:
        print_json({"results": results})


if __name__ == "__main__":
    main()
