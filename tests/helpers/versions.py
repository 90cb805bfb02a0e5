"""Several versions of a model's weights, each in a segment of its own, and a model that holds any of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from plain_model import model_of
from ray import cloudpickle

from vlrl.weights.manifest import Manifest, Segment, create_segment, plan_segment

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # engines' processes do not find this file


def shaken_segments(folder: Path, into: Path, num_versions: int) -> list[Manifest]:
    """Version 0 is the folder's weights; in each later one every parameter has moved, the tower's too."""
    model, generator = model_of(folder), torch.Generator().manual_seed(0)
    layout = [(n, str(p.dtype).removeprefix("torch."), tuple(p.shape)) for n, p in model.named_parameters()]
    manifests = []
    for version in range(num_versions):
        manifest = plan_segment(into / f"weights-{version}", layout)
        create_segment(manifest)
        segment = Segment(manifest)
        for name, parameter in model.named_parameters():
            if version:
                scale = 0.3 * float(parameter.data.std()) if parameter.numel() > 1 else 0.1
                parameter.data.add_(scale * torch.randn(parameter.shape, generator=generator))
            segment.write_shard(name, parameter.data, 0)
        manifests.append(manifest)
    return manifests


class Hold:
    """Stops an engine between two steps, as soon as a condition holds, until it is asked for something.

    Sent into the engine's process: the updates of a test then come at a known token, on any machine.
    """

    def __init__(self, *num_tokens: int, after_prompt: int = 0, until_update: bool = False) -> None:
        """Hold when a request with a prompt longer than after_prompt has generated so many, in turn.

        With until_update nothing but an update lets the engine go on.
        """
        self._until_update, self._waits_for_update = until_update, False
        self._num_tokens, self._after_prompt = list(num_tokens), after_prompt
        self.reached = 0

    def install(self, actor: Any) -> None:
        """Wrap the engine's step; runs in its process."""
        import time

        engine, step, update = actor._engine, actor._engine._step, actor._engine.update
        actor.hold = self

        def updating(*arguments: Any) -> Any:
            self._waits_for_update = False
            return update(*arguments)

        def stepping() -> None:
            if self._waits_for_update:  # something else was asked for, such as another request
                time.sleep(0.001)
                return
            step()
            scheduler = engine._engine.engine_core.engine_core.scheduler
            generated = [
                len(request.output_token_ids)
                for request in scheduler.running
                if request.num_prompt_tokens > self._after_prompt
            ]
            if self._num_tokens and max(generated, default=0) >= self._num_tokens[0]:
                self._num_tokens.pop(0)
                self.reached += 1
                self._waits_for_update = self._until_update
                while engine._jobs.empty():
                    time.sleep(0.001)

        engine._step, engine.update = stepping, updating
