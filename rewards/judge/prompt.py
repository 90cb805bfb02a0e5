"""What a judge reads: a rubric with the question, the reference and the answer, fenced off as data."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError, UndefinedError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from vlrl.errors import ConfigError

# What a chat template or a tokenizer may take for its own: <|im_end|>, <｜User｜>, <image>, </s>, [INST].
# Servers look for such texts in messages too: a completion that spells one out would end the user's turn.
_CONTROL = re.compile(r"<(?=[|｜]|[^\s<>]{1,64}>)|\[(?=/?[A-Z_]{2,24}\])")


@dataclass(frozen=True, slots=True)
class Block:
    """One text that is shown as data.

    Attributes:
        heading: what it is, for the judge.
        tag: name of its fence.
        text: as it came.
        judged: it is what the judge judges, so a rubric may not show an altered copy of it.
    """

    heading: str
    tag: str
    text: str
    judged: bool = False


def harmless(text: str) -> str:
    """The text with a space inside everything that looks like a control token or a tag: `< |im_end|>`.

    Lone surrogates, which are not Unicode text, become question marks.
    """
    return _CONTROL.sub(lambda match: match[0] + " ", text.encode("utf-8", "replace").decode())


def fenced(blocks: Mapping[str, Block]) -> dict[str, str]:
    """Each block's text between <TAG-CODE> and </TAG-CODE>, where CODE occurs in none of the texts.

    The code is a hash of the text, so the same text is always fenced alike, and a writer who knew the rule
    would still have to find a text that holds its own hash; should one do, another hash is taken.
    """
    texts = [harmless(block.text) for block in blocks.values()]
    found = {}
    for (name, block), text in zip(blocks.items(), texts, strict=True):
        number = 0
        while any((code := _code(text, number)) in other for other in texts):
            number += 1
        found[name] = f"<{block.tag}-{code}>\n{text}\n</{block.tag}-{code}>"
    return found


def render(rubric: str, blocks: Mapping[str, Block], values: Mapping[str, Any]) -> str:
    """The rubric with its variables filled in; blocks that it does not show follow under their headings.

    Args:
        rubric: plain text or a Jinja template, run in Jinja's sandbox.
        blocks: variable → what it shows, fenced; what they hold is never taken for a template.
        values: variable → trusted values, as they are.

    Raises:
        ConfigError: for a template that is wrong, names an unknown variable or changes what is judged.
        ValueError: if it needs metadata that the sample has not.
    """
    template, mentioned = _compiled(rubric)
    if unknown := mentioned - blocks.keys() - values.keys():
        known = ", ".join(sorted({*blocks, *values}))
        raise ConfigError(f"the rubric names {', '.join(sorted(unknown))}; it may use {known}")
    shown = fenced({name: block for name, block in blocks.items() if block.text})
    try:
        text = template.render({**values, **dict.fromkeys(blocks, ""), **shown}).strip()
    except UndefinedError as error:
        raise ValueError(f"the rubric cannot be filled in for this sample: {error}") from error
    except (TemplateError, TypeError, ArithmeticError) as error:
        raise ConfigError(f"the rubric cannot be rendered: {type(error).__name__}: {error}") from error
    for name, block in shown.items():
        if block in text:
            continue
        if name in mentioned and blocks[name].judged:
            raise ConfigError(f"the rubric changes {{{{ {name} }}}}; show it as it is, or do not mention it")
        text += f"\n\n{blocks[name].heading}:\n{block}"
    return text


@functools.cache
def rubric_text(path: str) -> str:
    """The text of a rubric's file, read once a process: a run is judged by one rubric.

    Raises:
        ConfigError: if it cannot be read.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"rubric_file={path!r} cannot be read: {error}") from error


def conversation_text(messages: Sequence[Mapping[str, Any]]) -> str:
    """A conversation as text, media as [image 1], [video 2] in order; roles if there are several turns."""
    turns, num_media = [], 0
    for message in messages:
        content = message.get("content") or ""
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        text = ""
        for part in parts:
            if part.get("type") == "text":
                text += str(part.get("text", ""))
            else:
                num_media += 1
                text += f"[{part.get('type')} {num_media}]"
        turns.append(f"{message.get('role')}: {text}" if len(messages) > 1 else text)
    return "\n".join(turns)


def answer_text(answer: Any) -> str:
    """A sample's answer as text; "" for none, JSON for what is neither text nor a number."""
    if answer is None:
        return ""
    return str(answer) if isinstance(answer, str | int | float) else json.dumps(answer, default=str)


@functools.lru_cache(maxsize=256)
def _compiled(rubric: str) -> tuple[Template, frozenset[str]]:
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
    try:
        return environment.from_string(rubric), frozenset(
            meta.find_undeclared_variables(environment.parse(rubric))
        )
    except TemplateSyntaxError as error:
        raise ConfigError(f"the rubric's line {error.lineno} is not Jinja: {error.message}") from error


def _code(text: str, number: int) -> str:
    return hashlib.sha256(f"{number}:{text}".encode()).hexdigest()[:12]
