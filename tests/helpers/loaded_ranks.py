"""What trainer ranks hold of a model, asked in their own processes (`rank_processes`)."""

from __future__ import annotations

import ctypes
import gc
import os
import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias
from unittest.mock import patch

import torch
from torch import Tensor

from vlrl.config import Config

MEMORY_EVERY_S = 0.001
PAUSE_S = 0.005


Slices: TypeAlias = dict[str, tuple[Tensor, tuple[int, ...]]]
"""(flat slice, whole shape) of each weight by name, tied ones under each name."""


@dataclass
class Loaded:
    """A rank's part of a model.

    Attributes:
        slices: of its weights.
        num_whole: values that lie on the rank in whole weights.
        trained: names of what gets gradients.
        buffers: whole, by name.
    """

    slices: Slices
    num_whole: int
    trained: set[str]
    buffers: dict[str, Tensor]


def load(config: Config, rank: int, port: int) -> Loaded:
    """Load a model and say what the rank holds of it."""
    from vlrl.trainer.group import join_ranks
    from vlrl.trainer.loading import load_split
    from vlrl.trainer.model import deepspeed_config

    _rank(config, rank, port)
    device = join_ranks(config.trainer.timeout_s)
    return _held(load_split(config, deepspeed_config(config, device.type)))


def start(config: Config, rank: int, port: int) -> tuple[Loaded, Loaded | None]:
    """Start a rank and say what it holds of the model and of the KL term's frozen reference."""
    running = _started(config, rank, port)
    reference = running._reference
    return _held(running._engine.module.model), reference and _held(reference.engine.module.model)


def start_with_float32_norms(config: Config, rank: int, port: int) -> tuple[Loaded, Loaded | None]:
    """`start` where transformers keeps Qwen3-VL's norms in float32, as it does in other families."""
    from transformers import Qwen3VLForConditionalGeneration

    with patch.object(Qwen3VLForConditionalGeneration, "_keep_in_fp32_modules_strict", {"input_layernorm"}):
        return start(config, rank, port)


def feature_folder(config: Config, rank: int, port: int) -> str:
    """Name of the folder in which the features of a frozen tower are kept."""
    assert _started(config, rank, port)._cache is not None
    assert config.vision_cache.dir is not None
    [folder] = Path(config.vision_cache.dir).iterdir()
    return folder.name


def why_not(config: Config, rank: int, port: int) -> str | None:
    """The error with which loading ends; None if it does not."""
    from vlrl.errors import ConfigError

    try:
        load(config, rank, port)
    except ConfigError as error:
        return str(error)
    return None


def peak_bytes(config: Config, rank: int, port: int) -> int:
    """Memory that starting a rank takes at its peak, above what the process had before.

    Pages of the mapped checkpoint are not counted: they are the system's cache, one for all ranks. Each
    weight is held up, as by a slow disk: what reads ahead meanwhile is counted.
    """
    slow = torch.nn.modules.module.register_module_parameter_registration_hook(lambda *_: time.sleep(PAUSE_S))
    try:
        with _Peak() as peak:
            _started(config, rank, port)
    finally:
        slow.remove()
    return peak.num_bytes


def _rank(config: Config, rank: int, port: int) -> Any:
    from vlrl.trainer.rank import TrainerRank

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.manual_seed(rank)
    return TrainerRank(config, [], rank, ("127.0.0.1", port))


def _started(config: Config, rank: int, port: int) -> Any:
    running = _rank(config, rank, port)
    running.start()
    return running


def _held(model: Any) -> Loaded:
    from vlrl.model.lora import slice_of

    return Loaded(
        {
            name: (slice_of(p).clone(), tuple(p.ds_shape))
            for name, p in model.named_parameters(remove_duplicate=False)
        },
        sum(p.data.numel() for p in model.parameters() if not p.ds_persist),
        {name for name, p in model.named_parameters() if p.requires_grad},
        {name: buffer.clone() for name, buffer in model.named_buffers()},
    )


class _Peak:
    """Samples this process's own memory in a thread."""

    def __enter__(self) -> Self:
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # what was freed before would be used again, and not counted
        self._before = self._highest = _own_memory()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    @property
    def num_bytes(self) -> int:
        return self._highest - self._before

    def _watch(self) -> None:
        while not self._done.wait(MEMORY_EVERY_S):
            self._highest = max(self._highest, _own_memory())


def _own_memory() -> int:
    found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024
