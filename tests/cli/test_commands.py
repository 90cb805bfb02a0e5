"""Every command that README, docs and examples name exists; what they claim of hardware is planned."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from vlrl.cli.app import app
from vlrl.config import Config, load_config, parse_config
from vlrl.plan.model_config import known_models
from vlrl.plan.predict import GIB, PlannedMachine, predict
from vlrl.plan.shapes import ModelShape, read_shape
from vlrl.plan.workload import Prompts

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
IN_BLOCK = re.compile(r"^(?: {4}|\$ )(?:source \S+ && )?(vlrl .+)$", re.MULTILINE)
IN_FENCE = re.compile(r"^(vlrl .+)$", re.MULTILINE)
INLINE = re.compile(r"`(vlrl [a-z][^`]*)`")
HARDWARE = re.compile(r"[Nn]eeds (\d+)\s+(?:#\s+)?(?:NVIDIA )?GPUs?\s+(?:#\s+)?of\s+(?:#\s+)?(\d+) GB")
CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))
HUB_CONFIGS = [file for file in CONFIGS if load_config(file).model.path in known_models()]
STAND_IN = {"model": {"path": "m"}, "data": {"train": {"name": "digit_sum"}}, "rewards": [{"name": "math"}]}


def commands() -> Iterator[tuple[str, str]]:
    """(page, command) of each; a trailing comment or description (two spaces) is left out."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for pattern in (IN_BLOCK, IN_FENCE, INLINE):
            for match in pattern.finditer(text):
                line = re.split(r" {2,}|\s#\s", match[1])[0]
                yield str(page.relative_to(ROOT)), " ".join(line.split()).replace(r"\|", "|")


COMMANDS = sorted({(page, command) for page, command in commands() if "…" not in command})


def parsed(words: list[str]) -> tuple[str, list[str]]:
    """A command's dotted name and its arguments that are no options.

    Raises:
        click.ClickException: for a command or an option that does not exist.
    """
    node: Any = typer.main.get_command(app)
    name: list[str] = []
    while hasattr(node, "commands"):
        name.append(words.pop(0))
        if "|" in name[-1]:  # `vlrl env list|check`: each of them
            assert all(part in node.commands for part in name[-1].split("|")), name
            return " ".join(name), []
        assert name[-1] in node.commands, f"there is no vlrl {' '.join(name)}"
        node = node.commands[name[-1]]
        if not words and hasattr(node, "commands"):
            return " ".join(name), []
    context = node.make_context(name[-1], [], resilient_parsing=True)
    values, rest, _ = node.make_parser(context).parse_args(list(words))
    arguments = [value for key, value in values.items() if key in ("config", "overrides", "target") and value]
    flat = [item for value in arguments for item in (value if isinstance(value, list | tuple) else [value])]
    return " ".join(name), [*flat, *rest]


def machine(gigabytes: int) -> PlannedMachine:
    """A GPU of so many GB as it is sold: the driver shows a little less than so many GiB."""
    return PlannedMachine("cuda", int((gigabytes - 1) * GIB), 4e14)


def prompts_of(config: Config) -> Prompts:
    """A prompt as large as fits beside a completion, if an image of max_pixels leaves so much."""
    pixels = min(config.processor.max_pixels, 1_000_000)
    return Prompts(
        text_tokens=256, num_images=1, image_pixels=pixels, completion_tokens=config.rollout.max_tokens
    )


@cache
def shape_of(file: Path, adapted: bool) -> ModelShape:
    config = load_config(file)
    return read_shape(config if adapted else config.model_copy(update={"lora": None}), fetch=False)


def claim(text: str) -> tuple[int, int]:
    """(GPUs, GB of each) that a config's comment asks for."""
    match = HARDWARE.search(" ".join(line.lstrip("# ") for line in text.splitlines() if line.startswith("#")))
    assert match is not None, "the comment must say 'Needs N GPUs of M GB'"
    return int(match[1]), int(match[2])


def test_commands_are_found() -> None:
    assert len(COMMANDS) > 60
    assert ("README.md", "vlrl train configs/digit_sum_qwen2_5_vl_3b.yaml") in COMMANDS


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=lambda value: value[:60])
def test_a_command_of_the_docs_exists_with_its_options_and_its_config(page: str, command: str) -> None:
    name, arguments = parsed(shlex.split(command)[1:])
    if name.split()[0] not in ("train", "sft", "eval", "rollout", "plan", "config", "data") or not arguments:
        return
    target, *overrides = arguments
    overrides = [each for each in overrides if "=" in each]
    if not str(target).endswith(".yaml") or "RECIPE" in target:
        return
    if "/" in target:
        config = load_config(ROOT / target, overrides)
        if config.model.path in known_models() and name in ("train", "plan"):
            num_gpus, gigabytes = claim((ROOT / target).read_text(encoding="utf-8"))
            plan = predict(config, prompts_of(config), machine(gigabytes), read_shape(config, fetch=False))
            assert plan.fits(machine(gigabytes)), f"{page}: {command} needs {plan.needed_bytes / GIB:.1f} GiB"
            assert plan.num_gpus <= num_gpus, f"{page}: {command} takes {plan.num_gpus} GPUs"
    elif not any(override.startswith("rewards.") for override in overrides):
        parse_config(yaml.safe_load(yaml.safe_dump(STAND_IN)), command, overrides)


@pytest.mark.parametrize("file", HUB_CONFIGS, ids=lambda file: file.name)
def test_what_a_config_claims_to_need_is_enough(file: Path) -> None:
    num_gpus, gigabytes = claim(file.read_text(encoding="utf-8"))
    config = load_config(file)
    plan = predict(config, prompts_of(config), machine(gigabytes), shape_of(file, adapted=True))
    assert plan.fits(machine(gigabytes)), f"{plan.needed_bytes / GIB:.1f} GiB"
    assert plan.num_gpus <= num_gpus


def test_every_config_of_a_hub_model_is_held() -> None:
    hub = [file for file in CONFIGS if not load_config(file).model.path.startswith("/")]
    assert hub == HUB_CONFIGS


def test_the_first_real_config_fits_48_gb_as_its_comment_says() -> None:
    file = ROOT / "configs" / "digit_sum_qwen2_5_vl_3b.yaml"
    override = "generator.gpu_memory_utilization=0.25"
    assert "48 GB" in file.read_text(encoding="utf-8")
    assert override in file.read_text(encoding="utf-8")
    config = load_config(file, [override])
    assert predict(config, prompts_of(config), machine(48), shape_of(file, adapted=True)).fits(machine(48))
    assert "143 GB" in file.read_text(encoding="utf-8")
    whole = load_config(file).model_copy(update={"lora": None})
    plan = predict(whole, prompts_of(whole), machine(80), shape_of(file, False))
    assert plan.needed_bytes / GIB == pytest.approx(143, abs=2)


def test_the_recipes_page_claims_what_its_configs_claim() -> None:
    page = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    assert "**8 GPUs of 80 GB**" in page
    for name in set(re.findall(r"configs/([a-z_0-9]+\.yaml)", page)):
        assert claim((ROOT / "configs" / name).read_text(encoding="utf-8")) == (8, 80), name
