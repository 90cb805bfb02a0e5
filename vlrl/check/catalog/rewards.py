"""What is registered as a reward, and what each wants: `vlrl reward list` and `show`."""

from __future__ import annotations

import inspect
import json
from typing import Any

from vlrl.check.rewards.result import place_of
from vlrl.errors import ConfigError
from vlrl.registry import BUILT_IN, available, ignored
from vlrl.scoring.functions import CONTEXT_NAMES, RewardFunction, find_reward


def list_rewards() -> list[dict[str, Any]]:
    """Every registered reward; one that cannot be used is listed with the reason and its package."""
    rows = []
    for name, target in sorted(available("rewards").items()):
        built_in = name in BUILT_IN["rewards"]
        try:
            rows.append({**describe(name), "built_in": built_in})
        except (ConfigError, TypeError, ValueError) as error:  # the last two of an odd callable's signature
            rows.append({"name": name, "target": target, "built_in": built_in, "problem": str(error)})
    for name, plugin, reason in ignored("rewards"):
        rows.append({"name": name, "target": plugin.target, "built_in": False, "problem": reason})
    return rows


def describe(name: str) -> dict[str, Any]:
    """A reward's purpose, range and arguments.

    Raises:
        ConfigError: for a name that is not there, or a file that fails.
    """
    function = find_reward(name)
    declared = function.declared
    doc = inspect.getdoc(function.function) or ""
    options = _options(function)
    return {
        "name": name,
        "target": available("rewards").get(name, name),
        "purpose": doc.partition("\n\n")[0].replace("\n", " "),
        "doc": doc,
        "range": list(declared.range) if declared.range else None,
        "higher_is_better": declared.higher_is_better,
        "wants": sorted(function.wanted & CONTEXT_NAMES),
        "needs": sorted(function.required - options.keys()),
        "options": options,
        "runs": _where(function),
        "signature": _signature(function),
        "place": place_of(function.function),
        "config": _snippet(name, function, options),
    }


def _where(function: RewardFunction) -> str:
    kind = "async, in the driver" if function.is_async else "GPU, in the driver"
    kind = kind if function.in_driver else "in the pool"
    return f"{kind}, batches of {function.declared.batch_size}" if function.declared.batched else kind


def _options(function: RewardFunction) -> dict[str, str]:
    """Keyword parameters that the config may set, with their defaults as Python writes them."""
    skipped = function.filled | CONTEXT_NAMES
    return {
        name: "required" if p.default is p.empty else repr(p.default)
        for name, p in _parameters(function).items()
        if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) and name not in skipped
        if p.default is not p.empty or p.kind is p.KEYWORD_ONLY
    }


def _parameters(function: RewardFunction) -> dict[str, inspect.Parameter]:
    called = function.function
    return dict(inspect.signature(called).parameters) if callable(called) else {}


def _signature(function: RewardFunction) -> str:
    """The signature, a parameter a line where it is long."""
    called: Any = function.function
    if not callable(called):
        return type(called).__name__
    name = getattr(called, "__name__", type(called).__name__)
    signature = _unquoted(inspect.signature(called))
    text = f"{name}{signature}"
    if len(text) <= 88:
        return text
    lines, star = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            lines.append("    *,")
            star = True
        lines.append(f"    {parameter},")
    returns = signature.return_annotation
    ending = "" if returns is signature.empty else f" -> {returns}"
    return f"{name}(\n" + "\n".join(lines) + f"\n){ending}"


class _Verbatim(str):
    """A text whose repr is itself: annotations as the author wrote them."""

    def __repr__(self) -> str:
        return str(self)


def _unquoted(signature: inspect.Signature) -> inspect.Signature:
    def plain(annotation: Any) -> Any:
        if annotation is inspect.Signature.empty:
            return annotation
        written = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        return _Verbatim(written)

    parameters = [p.replace(annotation=plain(p.annotation)) for p in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=plain(signature.return_annotation))


def _snippet(name: str, function: RewardFunction, options: dict[str, str]) -> str:
    """The lines of a config that use it: what it cannot do without, or one of its options."""
    lines = ["rewards:", f"  - name: {name}"]
    if not function.declared.higher_is_better:
        lines.append("    weight: -1.0")
    required = [f"{key}: …" for key, default in options.items() if default == "required"]
    if options:
        key = next(iter(options))
        default = _parameters(function)[key].default
        value = list(default) if isinstance(default, tuple) else default
        shown = json.dumps(value, default=str) if not isinstance(value, str) or not value else value
        lines.append(f"    options: {{{', '.join(required) or f'{key}: {shown}'}}}")
    return "\n".join(lines)
