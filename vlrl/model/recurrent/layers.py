"""The layers of transformers' models that carry a state, taught to read prefix trees."""

from __future__ import annotations

import sys
from functools import wraps
from types import ModuleType
from typing import Any, TypeAlias

from torch import Tensor
from torch.overrides import TorchFunctionMode

from vlrl.errors import ConfigError
from vlrl.model.recurrent.shared import SharedRecurrence
from vlrl.model.recurrent.tree import RecurrentTree, Rule

Recurrence: TypeAlias = RecurrentTree | SharedRecurrence
ATTENDING = ("full_attention", "sliding_attention")
RECURRENT = "linear_attention"
CONVOLUTION, DELTA_RULE = "causal_conv1d_fn", "torch_chunk_gated_delta_rule"
"""The functions, in the module of the model, by which its layers reach from one token to the next."""


def has_state(text_config: Any) -> bool:
    """Whether a layer of a language model carries a state from token to token, by transformers' config of it.

    Raises:
        ConfigError: for a kind of layer that prefix trees are not known to be right for.
    """
    kinds = set(getattr(text_config, "layer_types", None) or ATTENDING)
    if unknown := kinds - {*ATTENDING, RECURRENT}:
        raise ConfigError(
            f"model.path: its language model has layers of kind {', '.join(sorted(unknown))}, which are not "
            f"known to be right over prefix trees; known: {', '.join((*ATTENDING, RECURRENT))}"
        )
    return RECURRENT in kinds


def install(model: Any) -> None:
    """Let the gated delta rule of a model follow `RecurrentTree`s that are given by the keyword `states`.

    Without one its functions are called as they were. (Gated delta networks: Yang et al., arXiv 2412.06464.)

    Raises:
        ConfigError: if its layers reach from token to token by other functions than are known.
    """
    layers = [layer for layer in model.get_decoder().modules() if hasattr(layer, "A_log")]
    for module in {sys.modules[type(layer).__module__] for layer in layers}:
        for name, reading in ((CONVOLUTION, _convolving), (DELTA_RULE, _scanning)):
            function = getattr(module, name, None)
            if function is None:
                raise ConfigError(
                    f"model.path: {module.__name__} has no function {name}, so the layers with a state of "
                    "this transformers cannot read prefix trees; install a version that vlrl was tested with"
                )
            _replace(module, name, function, reading)


class _OrderedSums(TorchFunctionMode):
    """Running sums as products: torch's own have no ordered algorithm on CUDA, which law 8 needs."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is not Tensor.cumsum:
            return func(*args, **(kwargs or {}))

        def sums(values: Tensor, dim: int) -> Tensor:
            size = values.shape[dim]
            return (values.movedim(dim, -1) @ values.new_ones(size, size).triu()).movedim(-1, dim)

        return sums(*args, **(kwargs or {}))


def _replace(module: ModuleType, name: str, function: Any, reading: Any) -> None:
    if not getattr(function, "reads_trees", False):
        replaced = reading(function)
        replaced.reads_trees = True
        setattr(module, name, replaced)


def _convolving(conv: Any) -> Any:
    @wraps(conv)
    def convolve(
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        *,
        states: Recurrence | None = None,
        **options: Any,
    ) -> Tensor:
        if states is None:
            found: Tensor = conv(hidden, weight, bias, **options)
            return found
        return states.convolve(conv, hidden, weight, bias, **options)

    return convolve


def _scanning(rule: Rule) -> Any:
    @wraps(rule)
    def scan(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        g: Tensor,
        beta: Tensor,
        states: Recurrence | None = None,
        **options: Any,
    ) -> tuple[Tensor, Tensor | None]:
        if states is None:
            return rule(query, key, value, g=g, beta=beta, **options)
        for given in ("initial_state", "output_final_state", "cu_seqlens"):
            options.pop(given, None)  # as trees have them
        with _OrderedSums():
            return states.scan(rule, query, key, value, {"g": g, "beta": beta}, **options), None

    return scan
