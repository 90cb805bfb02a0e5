"""What every section of the config tree is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Base of every section: unknown keys are errors, and defaults are checked like given values."""

    model_config = ConfigDict(extra="forbid", validate_default=True, use_attribute_docstrings=True)
