"""docs/reference/options.md: every option of a config, from its own classes."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from vlrl.cli.reference.markdown import MADE_BY
from vlrl.config import Config
from vlrl.config.names import ALIASES
from vlrl.config.section import option_meanings

HEAD = f"""# Every option

{MADE_BY}

On the command line and in YAML an option is its dotted key: `optim.lr=1e-5`, `data.train=rows.jsonl`,
`rewards=[math, numeric]`. `vlrl config show my.yaml` prints a config with all defaults, `vlrl config schema
--markdown` this page. What TRL, verl and EasyR1 call an option is [at the end](#other-projects-words).
"""
WORDS_HEAD = """
## Other projects' words

The last part of a key of TRL, verl, EasyR1 or VLM-R1, and the option here that comes nearest; a mistyped or
foreign key is answered with it. Meanings differ in places: here `rollout.prompts_per_step` counts prompts of
a step on all ranks, not completions of a device; micro-batches are filled by tokens; and
`algorithm.num_minibatches` is how many optimizer steps a batch of samples makes.

| there | here |
|---|---|
"""
NAMES: Mapping[Any, str] = {
    type(None): "null",
    Any: "any",
    str: "text",
    int: "integer",
    float: "number",
    bool: "`true` or `false`",
    Path: "path",
}


def options_page() -> str:
    """The page as Markdown."""
    lines = [HEAD]
    lines += ["\n## At the top\n", "| option | type | default | meaning |", "|---|---|---|---|"]
    sections = []
    for name, info in Config.model_fields.items():
        if inner := _section(info.annotation):
            sections.append((f"{name}.NAME" if get_origin(info.annotation) is dict else name, inner))
        meaning = option_meanings(Config).get(name, "")
        if not inner or meaning or _is_list(info):
            lines.append(_row(name, info, meaning))
    for name, section in sections:
        lines += _tables(name, section)
    return "\n".join(lines) + WORDS_HEAD + "".join(f"| `{k}` | `{v}` |\n" for k, v in sorted(ALIASES.items()))


def _tables(prefix: str, section: type[BaseModel]) -> Iterator[str]:
    meaning = " ".join((section.__doc__ or "").split())
    yield f"\n## {prefix}\n\n{meaning}\n\n| option | type | default | meaning |\n|---|---|---|---|"
    inner = []
    for name, info in section.model_fields.items():
        yield _row(f"{prefix}.{name}", info, option_meanings(section).get(name, ""))
        if (found := _section(info.annotation)) and found.__name__ != "RewardConfig":
            inner.append((f"{prefix}.{name}", found))
    for name, found in inner:
        yield from _tables(name, found)


def _row(key: str, info: FieldInfo, meaning: str) -> str:
    meaning = " ".join(meaning.split())
    if not meaning and (section := _section(info.annotation)):
        meaning = " ".join((section.__doc__ or "").split())
    cells = (f"`{key}`", _type(info.annotation) + _bounds(info), _default(info), meaning)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _default(info: FieldInfo) -> str:
    value = info.get_default(call_default_factory=True)
    if value is PydanticUndefined:
        return "required"
    if isinstance(value, BaseModel):
        return "see below"
    if isinstance(value, Enum):
        value = value.value
    shown = {None: "null", True: "true", False: "false"}
    if value is None or isinstance(value, bool):
        return f"`{shown[value]}`"
    return f"`{value}`" if isinstance(value, str | Path) and str(value) else f"`{_plain(value)}`"


def _plain(value: Any) -> str:
    return (
        f"{value:g}" if isinstance(value, float) else repr(list(value) if isinstance(value, tuple) else value)
    )


def _bounds(info: FieldInfo) -> str:
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    bounds = [
        f"{sign} {getattr(rule, name):g}"
        for rule in info.metadata
        for name, sign in signs.items()
        if getattr(rule, name, None) is not None
    ]
    return f", {', '.join(bounds)}" if bounds else ""


def _type(annotation: Any) -> str:
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(inside[0])
    if origin is Literal:
        return " or ".join(f"`{str(each).lower() if isinstance(each, bool) else each}`" for each in inside)
    if origin in (Union, types.UnionType):
        return " or ".join(_type(each) for each in inside)
    if origin in (list, tuple, dict):
        parts = [_type(each) for each in inside if each is not Ellipsis]
        return f"mapping of {' to '.join(parts)}" if origin is dict else f"list of {', '.join(parts)}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return re.sub(r"Config$", "", annotation.__name__).lower() + " section"
    return NAMES.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _is_list(info: FieldInfo) -> bool:
    return get_origin(info.annotation) is list


def _section(annotation: Any) -> type[BaseModel] | None:
    """The section class inside an annotation, if there is one."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for each in get_args(annotation) if (found := _section(each))), None)
