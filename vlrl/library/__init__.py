"""vlrl as a library: rows and rewards as Python objects, without a config file (docs/library.md)."""

from vlrl.library.client import TrainingClient
from vlrl.library.result import TrainResult
from vlrl.library.sources import RowList, episodes
from vlrl.library.trainers import DPO, GRPO, SFT

__all__ = ["DPO", "GRPO", "SFT", "RowList", "TrainResult", "TrainingClient", "episodes"]
