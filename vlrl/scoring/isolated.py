"""Copies of what a reward is given, so that what it does to them is seen by no other call."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np


def isolated(value: Any) -> Any:
    """The value with containers and records of its own; arrays are shared and cannot be written to.

    Pixels are large and many rewards look at them, so they are not copied. What is neither a container, a
    record (dataclass) nor an array is passed on as it is.
    """
    if isinstance(value, str | bytes | int | float | bool | None):
        return value
    if isinstance(value, np.ndarray):
        view = value.view()
        view.flags.writeable = False
        return view
    if isinstance(value, tuple):
        items = [isolated(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list | set | frozenset):
        return type(value)(isolated(item) for item in value)
    if isinstance(value, Mapping):
        return {key: isolated(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        twin = copy.copy(value)
        for field in dataclasses.fields(value):
            object.__setattr__(twin, field.name, isolated(getattr(value, field.name)))
        return twin
    return value
