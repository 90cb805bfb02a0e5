"""Prompt templates: the user's text written again from a record's columns, in jinja's sandbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from vlrl.data.markers import place_media
from vlrl.errors import ConfigError, DataError


class PromptTemplate:
    """Renders the last user turn. Variables: the record's columns, and `content`, the turn's own text."""

    def __init__(self, template: str, key: str) -> None:
        """Compile.

        Args:
            template: jinja source, or the path of a .jinja file.
            key: the option's dotted key, for errors.

        Raises:
            ConfigError: for a missing file or a syntax error.
        """
        self._source, self._where = template, key
        if "\n" not in template and template.endswith((".jinja", ".j2")):
            path = Path(template)
            if not path.is_file():
                raise ConfigError(f"{key}: template file {path} does not exist (looked in {Path.cwd()})")
            self._source, self._where = path.read_text(encoding="utf-8"), str(path)
        self._compiled: Template | None = None
        self._compile()

    def apply(
        self, messages: Sequence[Mapping[str, Any]], fields: Mapping[str, Any], place: str
    ) -> list[dict[str, Any]]:
        """The messages with the last user turn rendered; its media stay where their markers are.

        Raises:
            DataError: naming the place, if the template fails or loses a medium.
        """
        turns = [dict(message) for message in messages]
        last = next((turn for turn in reversed(turns) if turn["role"] == "user"), None)
        if last is None:
            raise DataError(f"{place}: no user turn that the template {self._where} could write")
        if isinstance(last["content"], str):
            last["content"] = self._render(last["content"], fields, place)
            return turns
        parts = last["content"]
        text = "".join(part["text"] if part["type"] == "text" else f"<{part['type']}>" for part in parts)
        media = {kind: [p for p in parts if p["type"] == kind] for kind in ("image", "video", "audio")}
        rendered = {"role": "user", "content": self._render(text, fields, place)}
        (placed,) = place_media([rendered], media, place)
        if not isinstance(placed["content"], str):  # each medium is a part already, with its own options
            placed["content"] = [
                part.get(part["type"]) if part["type"] != "text" else part for part in placed["content"]
            ]
        last["content"] = placed["content"]
        return turns

    def _render(self, content: str, fields: Mapping[str, Any], place: str) -> str:
        try:
            return self._compile().render({**fields, "content": content})
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            seen = ", ".join(["content", *fields])
            raise DataError(
                f"{place}: template {self._where}: {type(error).__name__}: {error} (variables: {seen})"
            ) from error

    def _compile(self) -> Template:
        if self._compiled is None:
            environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
            try:
                self._compiled = environment.from_string(self._source)
            except TemplateError as error:
                raise ConfigError(f"{self._where}: not a jinja template: {error}") from error
        return self._compiled

    def __getstate__(self) -> tuple[str, str]:
        return self._source, self._where  # a compiled template cannot be pickled

    def __setstate__(self, state: tuple[str, str]) -> None:
        (self._source, self._where), self._compiled = state, None
