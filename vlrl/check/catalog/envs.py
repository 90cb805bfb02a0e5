"""What is registered as an environment: `vlrl env list`."""

from __future__ import annotations

import inspect
from typing import Any

from vlrl.errors import ConfigError
from vlrl.registry import BUILT_IN, available, ignored, resolve
from vlrl.registry.built_in import ENV_KINDS


def list_envs() -> list[dict[str, Any]]:
    """Every registered environment; one that cannot be used is listed with the reason and its package."""
    rows = []
    for name, target in sorted(available("envs").items()):
        built_in = name in BUILT_IN["envs"]
        try:
            rows.append({**_described(name, target), "built_in": built_in})
        except (ConfigError, TypeError, ValueError) as error:  # the last two of an odd callable's signature
            rows.append({"name": name, "target": target, "built_in": built_in, "problem": str(error)})
    for name, plugin, reason in ignored("envs"):
        rows.append({"name": name, "target": plugin.target, "built_in": False, "problem": reason})
    return rows


def _described(name: str, target: str) -> dict[str, Any]:
    found = resolve("envs", name)
    doc = inspect.getdoc(found) or ""
    return {
        "name": name,
        "target": target,
        "kind": _kind(found),
        "purpose": doc.partition("\n\n")[0].replace("\n", " "),
        "doc": doc,
        "options": _options(found),
    }


def _kind(found: Any) -> str:
    """What its episodes are like."""
    module = str(getattr(found, "__module__", ""))
    if kind := next((kind for folder, kind in ENV_KINDS.items() if module.startswith(folder)), None):
        return kind
    if getattr(found, "single_step", False):
        return "question"
    return "tools" if hasattr(found, "tools") else "multi-step"


def _options(found: Any) -> dict[str, str]:
    """Constructor arguments with their defaults as Python writes them."""
    return {
        name: "required" if parameter.default is parameter.empty else repr(parameter.default)
        for name, parameter in inspect.signature(found).parameters.items()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }
