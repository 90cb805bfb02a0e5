"""The section that says what completions must look like."""

from __future__ import annotations

import json
from typing import Any, Literal, TypeAlias

from pydantic import Field, model_validator

from vlrl.config.section import Section

GrammarKind: TypeAlias = Literal["json_schema", "regex", "grammar"]


class StructuredOutputs(Section):
    """What every completion must look like, by one of four; the trainer's distribution is restricted too."""

    json_schema: dict[str, Any] | None = None
    """JSON of this schema."""
    regex: str | None = Field(None, min_length=1)
    """A text that this regular expression matches from its beginning to its end."""
    choice: list[str] | None = Field(None, min_length=1)
    """One of these texts."""
    grammar: str | None = None
    """A text of this grammar: rules in GBNF, as llama.cpp and xgrammar read it, that begin at `root`."""

    @model_validator(mode="after")
    def _one_of_them(self) -> StructuredOutputs:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none"
            raise ValueError(f"give one of json_schema, regex, choice and grammar, not {found}")
        if self.choice is not None and not all(self.choice):
            raise ValueError("choice has an empty text; leave it out")
        if self.grammar is not None and "::=" not in self.grammar:
            raise ValueError('grammar has no rule; write GBNF, such as: root ::= "left" | "right"')
        return self

    @property
    def kind_and_text(self) -> tuple[GrammarKind, str]:
        """The same for whoever compiles it: choices are a grammar, too."""
        if self.json_schema is not None:
            return "json_schema", json.dumps(self.json_schema)
        if self.regex is not None:
            return "regex", self.regex
        if self.grammar is not None:
            return "grammar", self.grammar
        return "grammar", "root ::= " + " | ".join(map(_quoted, self.choice or ()))


def _quoted(text: str) -> str:
    """A text as a grammar's literal."""
    return json.dumps(text, ensure_ascii=False)
