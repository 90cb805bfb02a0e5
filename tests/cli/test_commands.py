"""Every command that README, docs and examples name exists, on the hardware that its config names."""

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
from hardware_claims import claims, prompts_of

from vlrl.cli.app import app
from vlrl.config import load_config, parse_config
from vlrl.plan.model_config import known_models
from vlrl.plan.predict import predict
from vlrl.plan.report import verdict
from vlrl.plan.shapes import read_shape

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
IN_BLOCK = re.compile(r"^(?: {4}|\$ )(?:source \S+ && )?(vlrl .+)$", re.MULTILINE)
IN_FENCE = re.compile(r"^(vlrl .+)$", re.MULTILINE)
INLINE = re.compile(r"`(vlrl [a-z][^`]*)`")
STAND_IN = {"model": {"path": "m"}, "data": {"train": {"name": "digit_sum"}}, "rewards": [{"name": "math"}]}


def commands() -> Iterator[tuple[str, str]]:
    """(page, command) of each; a trailing comment or description (two spaces) is left out."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("\\\n", "")  # a command of several lines
        for pattern in (IN_BLOCK, IN_FENCE, INLINE):
            for match in pattern.finditer(text):
                line = re.split(r" {2,}|\s#\s", match[1])[0]
                yield str(page.relative_to(ROOT)), " ".join(line.split()).replace(r"\|", "|")


COMMANDS = sorted({(page, command) for page, command in commands() if "…" not in command})


@cache
def whole_command() -> Any:
    """What typer makes of all functions: once, not for each page."""
    return typer.main.get_command(app)


@cache
def does_not_fit(target: str, overrides: tuple[str, ...], name: str) -> str | None:
    """Load a config file as a command does; why training by it does not fit the machine that it names."""
    config = load_config(ROOT / target, list(overrides))
    if config.model.path not in known_models() or name != "train":
        return None
    machine = claims(ROOT / target)[0].machine
    plan = predict(config, prompts_of(config), machine, read_shape(config, fetch=False))
    return None if plan.fits(machine) else verdict(plan, machine)


def parsed(words: list[str]) -> tuple[str, list[str]]:
    """A command's dotted name and its arguments that are not options.

    Raises:
        click.ClickException: for a command or an option that does not exist.
    """
    node: Any = whole_command()
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
        assert (why := does_not_fit(target, tuple(overrides), name)) is None, f"{page}: {command}: {why}"
    elif not any(
        override.startswith("rewards.") or "./" in override for override in overrides
    ):  # files of a reader
        parse_config(yaml.safe_load(yaml.safe_dump(STAND_IN)), command, overrides)
