"""Which experts an engine on a CPU chose for each token (generator.routing_replay).

vLLM returns them itself from its second model runner, which needs a GPU. Its routers take a function that
is called with every choice, though, and a step's rows are its requests' tokens, one request after the other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch

from vlrl.errors import ConfigError
from vlrl.ledger import ExpertArray


@dataclass(slots=True)
class _Kept:
    """A request's rows so far, [num_tokens, num_layers, top_k] in pieces."""

    pieces: list[ExpertArray] = field(default_factory=list)
    num_tokens: int = 0


class ExpertRecorder:
    """Mixed into vLLM's worker: keeps the choices of the requests that run."""

    model_runner: Any

    def record_experts(self) -> None:
        """Begin to keep them.

        A token that is computed again, after an update of the weights, keeps the choice under which it was
        sampled.

        Raises:
            ConfigError: if the model has no experts.
        """
        runner = self.model_runner
        self._kept_experts: dict[str, _Kept] = {}  # by vLLM's name of a request
        chosen: dict[int, torch.Tensor] = {}
        num_layers = runner.model_config.get_total_num_hidden_layers()
        kind = np.uint8 if runner.model_config.get_num_experts() <= 256 else np.uint16
        routers = {}
        for name, layer in runner.get_model().named_modules():
            if found := re.search(r"\.layers\.(\d+)\..*\.experts$", f".{name}"):
                routers[int(found[1])] = layer.router
        if not routers:
            raise ConfigError("generator.routing_replay: the model has no experts; leave the option out")
        for number, router in routers.items():
            router.set_capture_fn(partial(chosen.__setitem__, number))
        execute = runner.execute_model

        def execute_model(scheduled: Any, *args: Any, **options: Any) -> Any:
            chosen.clear()
            for request in scheduled.finished_req_ids:
                self._kept_experts.pop(request, None)
            output = execute(scheduled, *args, **options)
            if chosen:
                self._keep(scheduled.num_scheduled_tokens, _rows_of(chosen, num_layers, kind))
            return output

        runner.execute_model = execute_model

    def take_experts(self, names: Sequence[str]) -> list[ExpertArray]:
        """The rows of requests that are done, by the names that they were added under."""
        # vLLM appends eight random characters to a name.
        found = {request.rpartition("-")[0]: request for request in self._kept_experts}
        return [np.concatenate(self._kept_experts.pop(found[name]).pieces) for name in names]

    def _keep(self, num_scheduled: dict[str, int], rows: ExpertArray) -> None:
        """Note a step's rows, which are in the order of the runner's batch."""
        batch, begin = self.model_runner.input_batch, 0
        for index, request in enumerate(batch.req_ids):
            end = begin + num_scheduled[request]
            kept = self._kept_experts.setdefault(request, _Kept())
            new = rows[begin + kept.num_tokens - int(batch.num_computed_tokens_cpu[index]) : end]
            if len(new):
                kept.pieces.append(new)
                kept.num_tokens += len(new)
            begin = end


def _rows_of(
    chosen: dict[int, torch.Tensor], num_layers: int, kind: type[np.unsignedinteger[Any]]
) -> ExpertArray:
    """[num_tokens, num_layers, top_k]; zeros in layers without experts, as vLLM has it."""
    num_tokens, top_k = next(iter(chosen.values())).shape
    rows = np.zeros((num_tokens, num_layers, top_k), kind)
    for layer, experts in chosen.items():
        rows[:, layer] = experts.numpy()
    return rows
