"""The random states of a rank's process: in a checkpoint, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

HOST, DEVICE = "rng", "rng_cuda"


def random_states(device_type: str) -> dict[str, Any]:
    """The states of torch's generators that a rank on this kind of device uses."""
    states: dict[str, Any] = {HOST: torch.get_rng_state()}
    if device_type == "cuda":
        states[DEVICE] = torch.cuda.get_rng_state()
    return states


def set_random_states(states: Mapping[str, Any], device_type: str) -> list[str]:
    """Put back what `random_states` gave; what could not be, in words."""
    torch.set_rng_state(states[HOST])
    if device_type != "cuda":
        return []
    if DEVICE not in states:
        return ["the checkpoint has no random state of a GPU: this one's begins from the seed again"]
    torch.cuda.set_rng_state(states[DEVICE])
    return []
