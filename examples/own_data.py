"""Train on your own rows with your own reward, from Python.

    python examples/own_data.py

Writes a small table of questions with images, mixes it with a built-in set that has a reward of its own,
builds a tiny model, and runs a few steps of SFT and GRPO.
"""

from __future__ import annotations

import json
from pathlib import Path

from PIL import Image

from vlrl import grpo, sft
from vlrl.config import Config, parse_config
from vlrl.envs.visual.questions.digit_sum import DigitSum
from vlrl.model.tiny import build_tiny_qwen2_5_vl
from vlrl.tracking.console import TrainConsole


def write_rows(folder: Path, num_rows: int) -> Path:
    """One JSON row a line, in columns of our own; <image> says where in the text each image goes."""
    folder.mkdir(parents=True, exist_ok=True)
    dataset = DigitSum(num_rows=num_rows)
    path = folder / "rows.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for index in range(num_rows):
            row = dataset[index]
            *images, question = row["messages"][0]["content"]
            names = [f"{index}-{number}.png" for number in range(len(images))]
            for name, part in zip(names, images, strict=True):
                Image.fromarray(part["image"]).save(folder / name)
            own = {
                "question": "<image><image>" + question["text"],
                "photos": names,  # relative to the file
                "sum": row["answer"],
                "target": row["target"],  # what supervised training imitates
                "digits": row["metadata"]["digits"],  # the reward asks for it by name
            }
            file.write(json.dumps(own) + "\n")
    return path


def config(folder: Path, rows: Path, model: Path, name: str, num_steps: int) -> Config:
    """Everything not given has a default; `vlrl config schema` lists it all."""
    return parse_config(
        {
            "run": {"name": name, "dir": str(folder)},
            "model": {"path": str(model)},
            "data": {
                "train": [
                    {
                        "name": str(rows),
                        "columns": {"problem": "question", "images": "photos", "answer": "sum"},
                        "template": "{{ content | trim }}",  # here, say how the answer is to be written
                        "weight": 3.0,
                    },
                    {"name": "digit_sum", "rewards": [{"name": "answer_exact"}]},
                ]
            },
            "rewards": [{"name": f"{Path(__file__).parent / 'reward.py'}:close_sum"}],
            "num_steps": num_steps,
            "rollout": {"prompts_per_step": 4, "group_size": 4, "max_tokens": 24},
            "optim": {"lr": 3e-4},
            "generator": {"max_model_len": 256},
            "sft": {"batch_size": 8},
        }
    )


def main(folder: Path = Path("runs/own_data"), num_steps: int = 5) -> dict[str, object]:
    """Returns the summary of the GRPO run."""
    rows = write_rows(folder / "data", num_rows=64)
    model = build_tiny_qwen2_5_vl(folder / "init", DigitSum().corpus())
    with TrainConsole("own data", num_steps) as console:
        warm = config(folder, rows, model, "warm", num_steps)
        sft.train(warm, console)
        return grpo.train(config(folder, rows, warm.run_dir / "model", "grpo", num_steps), console)


if __name__ == "__main__":
    main()
