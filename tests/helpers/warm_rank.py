"""What every rank imports, for `rank_processes` to have it imported once.

DeepSpeed is imported as `vlrl.trainer.group` does it, without the tracker that it would bring.
"""

from __future__ import annotations

import sys

import transformers.modeling_utils

import vlrl.trainer.loading
import vlrl.trainer.rank

sys.modules["mlflow"] = None  # type: ignore[assignment]
import deepspeed  # noqa: E402

del sys.modules["mlflow"]

__all__ = ["deepspeed", "transformers", "vlrl"]
