"""docs/reference/envs.md: every built-in environment, from its class and its constructor."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from vlrl.check.catalog.envs import list_envs
from vlrl.cli.reference.markdown import MADE_BY, code, docstring_of, escape, link, page, prose, table
from vlrl.errors import ConfigError
from vlrl.registry import resolve

HEAD = f"""# Every environment

{MADE_BY}

[environments.md](../environments.md) explains how to choose, check and write one, [gui.md](../gui.md)
what the screens have in common; `vlrl env list` adds those of installed packages.

A config names one by `data: {{train: {{name: env, options: {{env: visual/mazes, options: {{level: 3}}}}}}}}`.
The kind says what an episode is: *question*, one answer; *tools*, tool calls and then an answer;
*multi-step*, a sequence of actions; *adapter*, what another project's environment does.
"""


def envs_page() -> str:
    """The page as Markdown.

    Raises:
        ConfigError: for an environment that cannot be imported.
    """
    rows = [row for row in list_envs() if row["built_in"]]
    if broken := [f"{row['name']}: {row['problem']}" for row in rows if "problem" in row]:
        raise ConfigError("; ".join(broken))
    summary = [(link(row["name"]), row["kind"], escape(row["purpose"])) for row in rows]
    parts = [HEAD, table(("environment", "kind", "purpose"), summary)]
    for row in rows:
        parts += _environment(row)
    return page(parts)


def _environment(row: Mapping[str, Any]) -> Iterator[str]:
    found = resolve("envs", row["name"])
    doc = docstring_of(row["doc"])
    path = row["target"].partition(":")[0].removeprefix("vlrl.").replace(".", "/") + ".py"
    yield f"## {row['name']}"
    yield escape(doc.purpose)
    yield prose(doc.body)
    yield f"Kind: {row['kind']}. Source: [{path}](../../{path})."
    if options := list(_options(found)):
        yield table(("option", "default", "meaning"), options)


def _options(found: Any) -> Iterator[tuple[str, str, str]]:
    """What a config may set, with those that `**options` hands on to other classes."""
    rows: dict[str, tuple[str, str]] = {}
    for place in (found, *_handed_on_to(found)):
        for name, (default, meaning) in _own_options(place).items():
            first_default, first_meaning = rows.get(name, (default, ""))
            rows[name] = (first_default, first_meaning or meaning)
    for name, (default, meaning) in rows.items():
        yield code(name), default, escape(meaning)


def _own_options(found: Any) -> dict[str, tuple[str, str]]:
    """The arguments of a function, or of a class's constructors for as long as each takes `**options`."""
    rows: dict[str, tuple[str, str]] = {}
    for depth, constructor in enumerate(_constructors(found)):
        doc = docstring_of(inspect.getdoc(constructor) or "").arguments
        if inspect.isclass(found):
            doc = {**docstring_of(inspect.getdoc(found) or "").arguments, **doc}
        parameters = list(inspect.signature(constructor).parameters.values())
        for each in parameters:
            required = each.default is each.empty
            if each.kind is each.VAR_KEYWORD or each.name == "self" or (required and depth):
                continue  # what a base class requires, its subclass gives it
            default = "required" if required else code(repr(each.default))
            rows.setdefault(each.name, (default, doc.get(each.name, "")))
        if not any(each.kind is each.VAR_KEYWORD for each in parameters):
            break
    return rows


def _constructors(found: Any) -> list[Any]:
    """What is called to make one: a function itself, or the constructors of a class and its bases."""
    if not inspect.isclass(found):
        return [found]
    return [each.__dict__["__init__"] for each in found.__mro__[:-1] if "__init__" in each.__dict__]


def _handed_on_to(found: Any) -> Iterator[Any]:
    """Classes that its constructor's docstring names as the place of further options (see `GuiRules`)."""
    bases = found.__mro__[:-1] if inspect.isclass(found) else [found]
    known = {name: each for base in bases for name, each in vars(sys.modules[base.__module__]).items()}
    for constructor in _constructors(found):
        for path in re.findall(r"`([\w.]+)`", inspect.getdoc(constructor) or ""):
            named = known.get(path.rpartition(".")[2])
            if inspect.isclass(named) and named.__name__.lstrip("_")[:1].isupper() and named not in bases:
                yield named
