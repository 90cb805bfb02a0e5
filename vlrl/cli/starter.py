"""A first config for a user's rows: which reward fits the answers, and what fits the machine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from vlrl.config import Config, parse_config
from vlrl.data.open import open_source
from vlrl.errors import ConfigError, DataError
from vlrl.plan.machine import PlannedMachine, this_machine
from vlrl.plan.predict import GIB, predict
from vlrl.plan.shapes import read_shape
from vlrl.plan.workload import Prompts
from vlrl.types import Row

MAX_ROWS = 256
"""Rows that are looked at."""
MAX_PIXELS = 1024 * 28 * 28
"""Pixels of an image: 1,024 tokens of Qwen2.5-VL."""
COMPLETION_TOKENS = 512
CHARS_PER_TOKEN = 2
"""Fewest characters of a token, for text in most languages."""
GPU = PlannedMachine("cuda", 79 * GIB, 7e14, gpus_per_node=1)
"""What is planned for where there is no GPU and the model is no toy: one of 80 GB."""
TOY_PARAMS = 100_000_000
NUMBER = re.compile(r"\s*[$€£]?[-+−]?\d[\d,]*(\.\d+)?\s*%?\s*")
CHOICE = re.compile(r"\s*\(?[A-J]\)?\.?\s*")
FORMULA = re.compile(r"[\\^=√π]")
TAGS = "Think first between <think> and </think>, then give the answer alone between <answer> and </answer>."


@dataclass(frozen=True, slots=True)
class DataLook:
    """What the first rows of a user's data look like.

    Attributes:
        num_rows: looked at.
        num_images: of a row at most; videos count too.
        num_chars: of a prompt's text at most.
        reward: that fits the answers.
        why: it does, in words.
    """

    num_rows: int
    num_images: int
    num_chars: int
    reward: str
    why: str


def write_starter(data: str, model: str, path: Path) -> tuple[DataLook, Config]:
    """Write a commented config for a dataset and a model; returns what was seen and the config.

    Args:
        data: as in data.train.name.
        model: a hub name or a folder.
        path: the .yaml file to write, which must not exist.

    Raises:
        ConfigError: if the file exists, or the model's config.json is nowhere.
        DataError: for rows that cannot be read, or have nothing to score against.
    """
    if path.exists():
        raise ConfigError(f"{path} exists; choose another --out, or remove it")
    look = look_at(data, model)
    whole = _tree(data, model, path.stem, look)
    config, where = _fitting(whole, look)
    text = _text(config, data, path, look, where)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return look, parse_config(yaml.safe_load(text), str(path))


def look_at(data: str, model: str) -> DataLook:
    """Read the first rows of a source and say which reward fits."""
    config = parse_config({"model": {"path": model}, "data": {"train": data}})
    rows = list(islice(iter(open_source(config.data.train[0], "data.train")), MAX_ROWS))
    if not rows:
        raise DataError(f"{data} has no rows; give a source with at least one")
    parts = [list(_parts(row)) for row in rows]
    reward, why = fitting_reward(
        [row.get("answer") for row in rows], any(row.get("env") for row in rows), data
    )
    return DataLook(
        num_rows=len(rows),
        num_images=max(sum(part["type"] != "text" for part in each) for each in parts),
        num_chars=max(sum(len(part["text"]) for part in each if part["type"] == "text") for each in parts),
        reward=reward,
        why=why,
    )


def fitting_reward(answers: Sequence[Any], played: bool, data: str) -> tuple[str, str]:
    """The registered reward for answers like these, and why.

    Raises:
        DataError: without answers.
    """
    if played:
        return "episode_return", "the rows are episodes: what their environment pays"
    known = [answer for answer in answers if answer is not None]
    if not known:
        raise DataError(
            f"{data}: no row has an answer to score against; name its column in a config, for instance "
            "columns: {answer: label}"
        )
    texts = [answer if isinstance(answer, str) else json.dumps(answer) for answer in known]
    for reward, fits, why in (
        ("box_iou", _is_box, "the answers are boxes of four numbers"),
        ("yes_no", lambda text: text.strip().lower() in ("yes", "no"), "the answers are yes or no"),
        (
            "multiple_choice",
            CHOICE.fullmatch,
            "the answers are letters",
        ),
        ("numeric", NUMBER.fullmatch, "the answers are numbers"),
        (
            "math",
            lambda text: NUMBER.fullmatch(text) or FORMULA.search(text),
            "the answers are formulas",
        ),
        ("answer_normalized", lambda text: len(text) <= 60, "the answers are a few words"),
    ):
        if all(fits(text) for text in texts):
            return reward, why
    return "rouge_l", "the answers are sentences: what they share with the reference; a judge may do better"


def _is_box(text: str) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return (
        isinstance(value, list) and len(value) == 4 and all(isinstance(item, int | float) for item in value)
    )


def _parts(row: Row) -> Iterable[dict[str, Any]]:
    for message in row["messages"]:
        content = message["content"]
        yield from [{"type": "text", "text": content}] if isinstance(content, str) else content


def _tree(data: str, model: str, name: str, look: DataLook) -> dict[str, Any]:
    """Training the whole model, at a size that fits the prompts."""
    room = look.num_images * 1024 + look.num_chars // CHARS_PER_TOKEN + COMPLETION_TOKENS + 256
    length = -(-room // 1024) * 1024
    source: dict[str, Any] = {"name": data}
    rewards: list[dict[str, Any]] = [{"name": look.reward}]
    if look.reward != "episode_return":
        source["template"] = "{{ content | trim }} " + TAGS
        rewards.append({"name": "think_answer_format", "weight": 0.1})
    return {
        "run": {"name": re.sub(r"[^A-Za-z0-9._-]", "-", name)},
        "model": {"path": model, "dtype": "bfloat16"},
        "processor": {"max_pixels": MAX_PIXELS},
        "data": {"train": source},
        "rewards": rewards,
        "num_steps": 200,
        "rollout": {"prompts_per_step": 16, "group_size": 8, "max_tokens": COMPLETION_TOKENS},
        "optim": {"lr": 1e-6, "warmup_steps": 5},
        "trainer": {"gradient_checkpointing": True, "max_tokens_per_micro_batch": max(4096, length)},
        "generator": {"max_model_len": length, "max_num_batched_tokens": max(8192, length)},
        "checkpoint": {"every": 50},
    }


def _fitting(tree: dict[str, Any], look: DataLook) -> tuple[dict[str, Any], str]:
    """The whole model where it fits, adapters where it does not; and what that was planned for, in words."""
    shape = read_shape(parse_config(dict(tree)))
    machine = this_machine()
    if machine.device == "cpu" and shape.num_params > TOY_PARAMS:
        machine = GPU
    if machine.device == "cpu":
        tree["model"]["dtype"] = "float32"
    prompts = Prompts(
        max(1, look.num_chars // CHARS_PER_TOKEN), look.num_images, MAX_PIXELS, COMPLETION_TOKENS
    )
    place = (
        f"{machine.memory_bytes / GIB:.0f} GiB of {'one GPU' if machine.device == 'cuda' else 'this host'}"
    )
    adapted = {**tree, "lora": {"rank": 32, "alpha": 64.0}, "optim": {"lr": 1e-5, "warmup_steps": 5}}
    for candidate, how in ((tree, "the whole model"), (adapted, "adapters, which take ten times the rate")):
        plan = predict(parse_config(json.loads(json.dumps(candidate))), prompts, machine)
        if plan.fits(machine):
            return candidate, f"{how}: {plan.needed_bytes / GIB:.0f} of the {place}"
    return adapted, f"more than the {place}: ask `vlrl plan` for changes that fit"


def _text(tree: dict[str, Any], data: str, path: Path, look: DataLook, where: str) -> str:
    """The tree as YAML with a word on what a newcomer changes first."""
    comments = {
        "model": "bfloat16 for GPUs; float32 is exact and slow",
        "processor": "larger images are shrunk to this many pixels",
        "data": "held-out rows, for accuracy before and after: eval: {name: heldout.jsonl}",
        "rewards": look.why,
        "rollout": "group_size completions of each prompt; raise max_tokens if many are cut",
        "lora": f"planned: {where}",
        "optim": "" if "lora" in tree else f"planned: {where}",
        "generator": "the longest prompt, images included, and its completion",
    }
    lines = [
        f"# Written by `vlrl init {data} {tree['model']['path']}` from the first {look.num_rows} rows. Next:",
        *(f"#   vlrl {what} {path}" for what in ("data check", "plan", "train")),
    ]
    for key, value in tree.items():
        if comment := comments.get(key):
            lines.append(f"# {comment}")
        in_one_line = key not in ("data", "rewards")
        lines.append(f"{key}: {_flow(value)}" if in_one_line else _block({key: value}))
    return "\n".join(lines) + "\n"


def _flow(value: Any) -> str:
    text = yaml.safe_dump(value, sort_keys=False, default_flow_style=True, width=1000)
    return text.removesuffix("...\n").strip()


def _block(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, default_flow_style=False, width=110).rstrip()
