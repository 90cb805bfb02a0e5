"""What is registered of algorithms, and what each takes: `vlrl algorithm list` and `show`."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Collection, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from vlrl.config.algorithm import (
    CREDIT_CONTEXT,
    KINDS,
    KL_CONTEXT,
    LOSS_CONTEXT,
    SELECTION_CONTEXT,
    SHARED,
)
from vlrl.config.asynchronous import CORRECTION_CONTEXT, CORRECTION_KEYS
from vlrl.config.learning.preferences import PAIRED_CONTEXT, SCORED_CONTEXT, UNPAIRED_CONTEXT
from vlrl.config.presets import PRESETS
from vlrl.errors import ConfigError
from vlrl.registry import BUILT_IN, available, ignored, resolve

ROLES: Mapping[str, str] = {
    **{kind: f"algorithm.{role}" for role, kind in KINDS.items()},
    "corrections": "algorithm.correction.kind",
    "regularizers": "algorithm.kl_estimator",
    "selections": "algorithm.selections",
    "preferences": "preferences.loss",
}
"""Kind → the key of the config that names one."""
READ: Mapping[str, Collection[str]] = {
    **{kind: SHARED[role] for role, kind in KINDS.items()},
    "corrections": CORRECTION_KEYS,
    "preferences": ("beta",),
}
"""Kind → keys beside that one which a function gets if it names them."""
GIVEN: Mapping[str, Collection[str]] = {
    "advantages": CREDIT_CONTEXT,
    "losses": LOSS_CONTEXT,
    "corrections": CORRECTION_CONTEXT,
    "regularizers": KL_CONTEXT,
    "selections": SELECTION_CONTEXT,
    "preferences": {*PAIRED_CONTEXT, *UNPAIRED_CONTEXT, *SCORED_CONTEXT},
}
"""Kind → what a function may ask for by name, which is no option."""


def list_algorithms() -> dict[str, list[dict[str, Any]]]:
    """Presets, and the functions of each kind; one that cannot be used is listed with the reason."""
    presets = [{"name": name, "purpose": p.meaning, "paper": p.paper} for name, p in PRESETS.items()]
    found: dict[str, list[dict[str, Any]]] = {"presets": presets}
    for kind in ROLES:
        rows = found.setdefault(kind, [])
        for name, target in sorted(available(kind).items()):
            built_in = name in BUILT_IN[kind]
            try:
                rows.append({**describe_function(kind, name), "built_in": built_in})
            except (ConfigError, TypeError, ValueError) as error:  # the last two of an odd signature
                rows.append({"name": name, "target": target, "built_in": built_in, "problem": str(error)})
        for name, plugin, reason in ignored(kind):
            rows.append({"name": name, "target": plugin.target, "built_in": False, "problem": reason})
    return found


def describe_function(kind: str, name: str) -> dict[str, Any]:
    """A function's purpose and options.

    Raises:
        ConfigError: for a name that is not there, or a package that fails.
    """
    function = resolve(kind, name)
    doc = inspect.getdoc(function) or ""
    parameters = list(inspect.signature(function).parameters.values())
    key, shared = ROLES[kind], READ.get(kind, ())
    section = key.rpartition(".")[0]
    options = {
        p.name: "required" if p.default is p.empty else repr(p.default)
        for p in parameters
        if p.kind is p.KEYWORD_ONLY and p.name not in {*GIVEN.get(kind, ()), *shared}
    }
    return {
        "name": name,
        "kind": kind,
        "key": key,
        "target": available(kind).get(name, name),
        "purpose": " ".join(doc.partition("\n\n")[0].split()),
        "doc": doc,
        "options": options,
        "reads": [f"{section}.{p.name}" for p in parameters if p.name in shared],
    }


def describe(name: str) -> dict[str, Any]:
    """The preset and the functions of a name.

    Raises:
        ConfigError: naming the nearest, if there is none.
    """
    functions = [describe_function(kind, name) for kind in ROLES if name in available(kind)]
    preset = PRESETS.get(name)
    if preset is None and not functions:
        known = sorted({*PRESETS, *(each for kind in ROLES for each in available(kind))})
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
        raise ConfigError(f"no algorithm is named {name!r}; {hint}")
    shown = {"paper": preset.paper, "meaning": preset.meaning, "keys": dict(preset.keys),
             "beside": preset.beside} if preset else None  # fmt: skip
    return {"name": name, "preset": shown, "functions": functions}


def show_list(found: Mapping[str, list[dict[str, Any]]], console: Console) -> None:
    """Print one line a preset or function."""
    for kind, rows in found.items():
        key = "algorithm=NAME" if kind == "presets" else f"{ROLES[kind]}=NAME"
        console.print(Text.assemble((kind, "bold"), (f"  {key}", "dim")))
        table = Table(box=None, padding=(0, 2, 0, 2), show_header=False)
        table.add_column("name", no_wrap=True)
        table.add_column("purpose", ratio=1)
        for row in rows:
            style = "red" if "problem" in row else ""
            mark = "" if row.get("built_in", True) else " +"
            table.add_row(Text(row["name"] + mark), Text(row.get("problem", row.get("purpose", "")), style))
        console.print(table)
    hint = "a file's function is ./file.py:name; vlrl algorithm check tries one"
    console.print(Text(hint, style="dim"))


def show_one(row: Mapping[str, Any], console: Console) -> None:
    """Print all that is known of a name."""
    if preset := row["preset"]:
        console.print(Text.assemble((f"preset {row['name']}", "bold"), f"  {preset['paper']}"))
        console.print(Text(preset["meaning"]))
        for key, value in preset["keys"].items():
            console.print(Text(f"  algorithm.{key}={'null' if value is None else value}", style="cyan"))
        if preset["beside"]:
            console.print(Text(preset["beside"], style="dim"))
    for function in row["functions"]:
        console.print(Text.assemble((f"{function['key']}={row['name']}", "bold"), f"  {function['target']}"))
        console.print(Text(function["doc"]))
        for name, default in function["options"].items():
            owner = function["key"].removesuffix(".kind")
            console.print(Text(f"  {owner}.options.{name} = {default}", style="cyan"))
