"""vlrl: train vision-language models with reinforcement learning.

As a library: `from vlrl import GRPO` (docs/library.md). Its names are imported when they are asked for:
`import vlrl` stays quick.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vlrl.library import DPO, GRPO, SFT, TrainingClient, TrainResult, episodes

__version__ = "0.1.0"

__all__ = ["DPO", "GRPO", "SFT", "TrainResult", "TrainingClient", "__version__", "episodes"]


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from vlrl import library

    return getattr(library, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
