"""The splits that a check of data looks at."""

from __future__ import annotations

from typing import Literal

Split = Literal["train", "eval"]
Splits = Literal["train", "eval", "all"]
