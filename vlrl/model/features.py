"""Features of images that several micro-batches of a step show: through the tower with gradient once.

An image is computed without gradient where a step shows it first, and again, with gradient, where it shows
it last. In between its features are leaves whose gradients are added up, and the last pass sends the sum into
the tower with its own. So an image costs two forward passes and one backward pass however often it is shown,
no activations of the tower outlive their micro-batch, and the ranks of ZeRO-3 call the tower in the same
places, and none where no rank has an image to compute. `vlrl.packing.pack` says what runs where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from vlrl.model.omni.towers import media_features

if TYPE_CHECKING:
    from vlrl.model.logprobs import DeviceBatch

Piece = dict[str, Tensor]
"""One image's: "pooled", or "tiles" in a family whose tower puts all tiles into one tensor; and
"deepstack.0" … where the tower speaks to several layers."""


class StepFeatures:
    """What one pass over a step's micro-batches, in their order, keeps of images."""

    def __init__(self) -> None:
        self._pieces: dict[str, Piece] = {}
        self._owed: dict[str, Piece] = {}

    def keep(self, key: str, piece: Piece, *, trained: bool) -> None:
        """An image that is shown again later; its gradients are added up if the tower is trained."""
        kept = {name: tensor.detach() for name, tensor in piece.items()}
        if trained and torch.is_grad_enabled():
            self._owed[key] = {name: torch.zeros_like(t, dtype=torch.float32) for name, t in kept.items()}
            for name, leaf in kept.items():
                hook = _into(self._owed[key][name])
                leaf.requires_grad_().register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]
        self._pieces[key] = kept

    def get(self, key: str) -> Piece | None:
        """What was kept of an image."""
        return self._pieces.get(key)

    def last(self, key: str, piece: Piece) -> Piece:
        """An image's features where it is shown last: with them goes what it owes the tower."""
        owed = self._owed.pop(key, None)
        self._pieces.pop(key, None)
        if owed is None:
            return piece
        return {name: _with_gradient(tensor, owed[name]) for name, tensor in piece.items()}


def _into(total: Tensor) -> Any:
    """Adds a leaf's gradient to the total, in float32, and forgets it."""

    def add(leaf: Tensor) -> None:
        assert leaf.grad is not None
        total.add_(leaf.grad.float())
        leaf.grad = None

    return add


class _WithGradient(torch.autograd.Function):
    """The features as they are; backward adds a gradient that is there already."""

    @staticmethod
    def forward(context: Any, features: Tensor, gradient: Tensor) -> Tensor:
        context.save_for_backward(gradient)
        return features.view_as(features)

    @staticmethod
    def backward(context: Any, arriving: Tensor) -> tuple[Tensor, None]:
        [gradient] = context.saved_tensors
        return (arriving.float() + gradient).to(arriving.dtype), None


_with_gradient: Callable[[Tensor, Tensor], Tensor] = _WithGradient.apply


def tower_features(core: Any, batch: DeviceBatch, kept: StepFeatures) -> Any:
    """Features of a micro-batch's distinct media, from the towers and projectors of `core`.

    Without media_inputs they are those that were kept, and the tower is not called.
    """
    if batch.media_inputs is None:
        known = [piece for key in batch.media_keys if (piece := kept.get(key)) is not None]
        return join_pieces(known, batch.input_ids.device)
    ahead = run_ahead(core, batch)
    features = media_features(core, batch.media_inputs, len(batch.media_here))
    if len(batch.media_here) == len(batch.media_keys) and not any(map(kept.get, batch.media_keys)):
        return features  # none is shown in another micro-batch
    here = pieces_here(features, batch)
    for key, piece in ahead.items():
        kept.keep(key, piece, trained=any(t.requires_grad for t in _tensors(features)))
    found = {key: kept.last(key, piece) for key, piece in here.items()}
    pieces = [found.get(key) or kept.get(key) for key in batch.media_keys]
    joined = join_pieces([piece for piece in pieces if piece is not None], batch.input_ids.device)
    blank = getattr(features, "blank", None if here else features)
    if blank is not None:  # the tower ran on a blank image, which ZeRO-3 must find in the loss
        joined.blank = blank
    return joined


def run_ahead(core: Any, batch: DeviceBatch) -> dict[str, Piece]:
    """The images that a step shows here first and later again, without gradient."""
    if batch.ahead_inputs is None:
        return {}
    with torch.no_grad():
        features = media_features(core, batch.ahead_inputs, len(batch.media_ahead))
    return _named(features, batch, batch.media_ahead)


def pieces_here(features: Any, batch: DeviceBatch) -> dict[str, Piece]:
    """The tower's output for the images that are in media_inputs, by content."""
    return _named(features, batch, batch.media_here)


def _named(features: Any, batch: DeviceBatch, places: Sequence[int]) -> dict[str, Piece]:
    if not places:
        return {}
    parts = [batch.media_parts[place] for place in places]
    keys = [batch.media_keys[place] for place in places]
    return dict(zip(keys, _pieces(features, parts), strict=True))


def of_each(pooled: Tensor | Sequence[Tensor], media_parts: Sequence[int]) -> Sequence[Tensor]:
    """Each image's features, given all tiles' in one tensor, each tile's (MiniCPM-V's), or each image's."""
    if isinstance(pooled, Tensor):
        return torch.split(pooled, list(media_parts))
    if len(pooled) == len(media_parts):
        return pooled
    tiles = iter(pooled)
    return [torch.cat([next(tiles) for _ in range(part)]) for part in media_parts]


def _pieces(features: Any, media_parts: Sequence[int]) -> Iterator[Piece]:
    """What the tower put out, image by image."""
    pooled, levels = features.pooler_output, getattr(features, "deepstack_features", None) or []
    tiles = isinstance(pooled, Tensor)
    for index, part in enumerate(of_each(pooled, media_parts)):
        stack = {f"deepstack.{i}": level[index] for i, level in enumerate(levels)}
        yield {"tiles" if tiles else "pooled": part, **stack}


def join_pieces(pieces: Sequence[Piece], device: torch.device) -> Any:
    """Join pieces into what the tower would have put out. Without images, one empty entry."""
    if not pieces:
        return SimpleNamespace(pooler_output=(torch.zeros(0, device=device),), deepstack_features=None)
    columns = {name: tuple(piece[name].to(device) for piece in pieces) for name in pieces[0]}
    pooled = torch.cat(columns.pop("tiles")) if "tiles" in columns else columns.pop("pooled")
    return SimpleNamespace(pooler_output=pooled, deepstack_features=list(columns.values()) or None)


def sum_of(features: Any) -> Tensor:
    """Sum of everything the tower gave to the language model, deepstack included."""
    total: Tensor = sum(tensor.float().sum() for tensor in _tensors(features))  # type: ignore[assignment]
    return total


def _tensors(features: Any) -> Iterator[Tensor]:
    yield from _flat((features.pooler_output, getattr(features, "deepstack_features", None)))


def _flat(tree: Any) -> Iterator[Tensor]:
    if isinstance(tree, Tensor):
        yield tree
    for item in tree if isinstance(tree, list | tuple) else ():
        yield from _flat(item)
