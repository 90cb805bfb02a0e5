"""docs/reference/algorithms.md: every preset, advantage, loss, correction, KL estimate and selection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vlrl.check.catalog.algorithms import ROLES, describe_function
from vlrl.cli.reference.markdown import MADE_BY, code, docstring_of, escape, page, prose, table
from vlrl.config.presets import PRESETS
from vlrl.registry import BUILT_IN

HEAD = f"""# Every algorithm

{MADE_BY}

[algorithms.md](../algorithms.md) says when to choose which, [papers.md](../papers.md) how each differs from
its paper. `vlrl algorithm show NAME` prints one entry.
"""
TITLES = {
    "advantages": "Advantages",
    "losses": "Losses",
    "corrections": "Corrections",
    "regularizers": "KL estimates",
    "selections": "Selections",
    "preferences": "Losses of preferences",
}


def algorithms_page() -> str:
    """The page as Markdown."""
    rows = [
        (code(name), escape(preset.meaning), preset.paper, "<br>".join(map(code, _keys(preset.keys))))
        for name, preset in PRESETS.items()
    ]
    parts = [
        HEAD,
        "## Presets",
        "`algorithm=NAME`, or `algorithm: {preset: NAME, …}` with keys that override.",
    ]
    parts += [table(("preset", "what it is", "paper", "sets"), rows)]
    parts += [f"{code(name)}: {escape(p.beside)}." for name, p in PRESETS.items() if p.beside]
    for kind, key in ROLES.items():
        parts += [f"## {TITLES[kind]}", f"Named by `{key}`."]
        for name in sorted(BUILT_IN[kind]):
            parts += _function(describe_function(kind, name))
    return page(parts)


def _keys(keys: Mapping[str, Any]) -> list[str]:
    return [f"{key}={'null' if value is None else str(value).lower()}" for key, value in keys.items()]


def _function(row: Mapping[str, Any]) -> Iterator[str]:
    doc = docstring_of(row["doc"])
    path = row["target"].partition(":")[0].replace(".", "/") + ".py"
    yield f"### {row['name']} ({row['key'].removeprefix('algorithm.')})"
    yield escape(doc.purpose)
    yield prose(doc.body)
    yield f"Source: [{path}](../../{path})."
    if row["reads"]:
        yield f"Reads {', '.join(map(code, row['reads']))}."
    if row["options"]:
        options = [
            (code(name), code(default), escape(doc.arguments.get(name, "")))
            for name, default in row["options"].items()
        ]
        yield table(("option", "default", "meaning"), options)
