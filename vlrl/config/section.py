"""What every section of the config tree is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

from vlrl.registry.objects import is_object, name_of

Name = Annotated[str, BeforeValidator(lambda value: name_of(value) if is_object(value) else value)]
"""Of a plug-in; a function or a class may stand for its own."""


def named_list(value: Any) -> Any:
    """One or several plug-ins as a list of mappings: x.jsonl is {name: x.jsonl}; what is neither stays."""
    if value is None:
        return []
    items = value if isinstance(value, list) else [value]
    return [{"name": item} if isinstance(item, str) else item for item in items]


class Section(BaseModel):
    """Base of every section: unknown keys are errors, and defaults are checked like given values."""

    model_config = ConfigDict(extra="forbid", validate_default=True, use_attribute_docstrings=True)

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
