"""What every section of the config tree is."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Collection, Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from vlrl.registry.objects import is_object, name_of

Name = Annotated[str, BeforeValidator(lambda value: name_of(value) if is_object(value) else value)]
"""Of a plug-in; a function or a class may stand for its own."""


def named_list(value: Any) -> Any:
    """One or several plug-ins as a list of mappings: x.jsonl is {name: x.jsonl}; what is neither stays."""
    if value is None:
        return []
    items = value if isinstance(value, list) else [value]
    return [{"name": item} if isinstance(item, str) else item for item in items]


@cache
def option_meanings(section: type[BaseModel]) -> Mapping[str, str]:
    """What each option of a section means: the docstring below it, read from the source.

    Only who shows them asks: pydantic would read them whenever the config is imported, a third of its time.
    """
    meanings = {}
    for base in reversed(section.__mro__):
        if not issubclass(base, Section) or base is Section:
            continue
        [tree] = ast.parse(inspect.cleandoc("\n" + inspect.getsource(base))).body
        assert isinstance(tree, ast.ClassDef)
        for option, after in zip(tree.body, tree.body[1:], strict=False):
            match option, after:
                case ast.AnnAssign(target=ast.Name(name)), ast.Expr(value=ast.Constant(str(text))):
                    meanings[name] = inspect.cleandoc(text)
    return meanings


class Section(BaseModel):
    """Base of every section: unknown keys are errors, and defaults are checked like given values."""

    model_config = ConfigDict(extra="forbid", validate_default=True)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /
    ) -> JsonSchemaValue:
        """The JSON Schema of a section, with each option's meaning."""
        schema = handler(core_schema)
        options = handler.resolve_ref_schema(schema)["properties"]
        for name, meaning in option_meanings(cls).items():
            options[name].setdefault("description", meaning)
        return schema

    def require_readers(self, choice: str, readers: Mapping[str, Collection[str]]) -> None:
        """Raise ValueError for an option that is set and would not be read.

        Args:
            choice: the option that says who reads.
            readers: of each of the others the values of `choice` that read it.
        """
        chosen = getattr(self, choice)
        for name, by in readers.items():
            value, default = getattr(self, name), type(self).model_fields[name].default
            if value != default and chosen not in by:
                raise ValueError(
                    f"{name}={value} has no effect with {choice}={chosen}; leave it out ({default}), or set "
                    f"{choice}={' or '.join(by)}"
                )
