"""docs/reference/rewards.md: every built-in reward, from its signature and docstring."""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

from vlrl.check.catalog.rewards import describe
from vlrl.cli.reference.markdown import (
    MADE_BY,
    code,
    docstring_of,
    escape,
    link,
    page,
    prose,
    range_text,
    table,
)
from vlrl.registry import BUILT_IN

HEAD = f"""# Every reward

{MADE_BY}

[rewards.md](../rewards.md) explains how to write, combine and test rewards; `vlrl reward show NAME`
prints one entry, with its signature and with rewards of installed packages.

Options go under `options` in a config: `rewards: [{{name: anls, options: {{threshold: 0.5}}}}]`. `answer` is
the sample's; arguments marked *context* are filled by vlrl, those marked *metadata* from the sample's row.
"""


def rewards_page() -> str:
    """The page as Markdown.

    Raises:
        ConfigError: for a reward that cannot be imported.
    """
    by_module: dict[str, list[dict[str, Any]]] = {}
    for name, target in BUILT_IN["rewards"].items():
        by_module.setdefault(target.partition(":")[0], []).append(describe(name))
    modules = sorted(by_module)
    rows = [
        (link(row["name"]), range_text(row["range"]), escape(docstring_of(row["doc"]).purpose))
        for module in modules
        for row in _sorted(by_module[module])
    ]
    parts = [HEAD, table(("reward", "range", "purpose"), rows)]
    for module in modules:
        parts += _module(module)
        common = _common_arguments(module)
        for row in _sorted(by_module[module]):
            parts += _reward(row, common)
    return page(parts)


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: str(row["name"]))


def _module(module: str) -> Iterator[str]:
    """The heading of a file's rewards, and what its docstring says of all of them."""
    path = module.removeprefix("vlrl.").replace(".", "/") + ".py"
    doc = docstring_of(importlib.import_module(module).__doc__ or "")
    yield f"## {path}"
    yield f"{escape(doc.purpose)} Source: [{path}](../../{path})."
    yield prose(doc.body)


def _common_arguments(module: str) -> dict[str, str]:
    """Arguments that a module's docstring explains for all of its rewards, as lines of `    name  meaning`.

    Those of the modules that it names come after its own.
    """
    meanings: dict[str, str] = {}
    modules = [module]
    for each in modules:
        text = inspect.cleandoc(importlib.import_module(each).__doc__ or "")
        for name, meaning in re.findall(r"^ {4}(\w+) {2,}(.+(?:\n {8,}.+)*)", text, re.MULTILINE):
            meanings.setdefault(name, " ".join(meaning.split()))
        named = re.findall(r"`(vlrl\.rewards\.[a-z_.]+)`", text)
        modules += [other for other in named if other not in modules and importlib.util.find_spec(other)]
    return meanings


def _reward(row: Mapping[str, Any], common: Mapping[str, str]) -> Iterator[str]:
    """The section of one reward."""
    doc = docstring_of(row["doc"])
    yield f"### {row['name']}"
    yield escape(doc.purpose)
    yield prose(doc.body)
    facts = [f"Declared range {code(range_text(row['range']))}." if row["range"] else "No declared range."]
    if not row["higher_is_better"]:
        facts.append("Lower is better.")
    facts.append(f"Runs {row['runs']}.")
    yield " ".join(facts)
    if arguments := list(_arguments(row, {**common, **doc.arguments})):
        yield table(("argument", "from", "meaning"), arguments)
    if doc.errors:
        yield "\n".join(f"- {code(name)} {escape(when)}" for name, when in doc.errors.items())


def _arguments(row: Mapping[str, Any], meanings: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """What the reward is given: the answer, what vlrl and the row fill, and its options."""
    origin = {"answer": "the sample"} if "answer" in meanings else {}
    origin |= dict.fromkeys(row["wants"], "context") | dict.fromkeys(row["needs"], "metadata")
    origin |= {
        name: "option, required" if default == "required" else f"option, {code(default)}"
        for name, default in row["options"].items()
    }
    for name, source in origin.items():
        yield code(name), source, escape(meanings.get(name, ""))
