"""Features of a frozen vision tower, kept by the content of the image: the tower runs once an image."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vlrl.model.features import Piece, StepFeatures, join_pieces, pieces_here, run_ahead
from vlrl.model.logprobs import DeviceBatch
from vlrl.model.omni.towers import media_features


class FeatureCache:
    """Called in the tower's place. A micro-batch with an image that is unknown runs the tower on all it has.

    Ranks of ZeRO-3 gather the tower's parameters together, so either all of them run it or none does: one
    small reduction a micro-batch decides.

    Args:
        capacity_bytes: host memory; beyond it the piece that was not used for longest is dropped.
        folder: also kept here, a file an image; name it by the tower's weights (`fingerprint`).
        agree: whether any rank says yes.
    """

    def __init__(self, capacity_bytes: int, folder: Path | None, agree: Callable[[bool], bool]) -> None:
        self._capacity, self._folder, self._agree = capacity_bytes, folder, agree
        self._pieces: OrderedDict[str, Piece] = OrderedDict()
        self._num_bytes = 0
        self._num_asked = self._num_found = 0
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def num_bytes(self) -> int:
        """Host memory in use."""
        return self._num_bytes

    def take_counts(self) -> tuple[int, int]:
        """(images asked for, those that were known) since the last call."""
        counts = self._num_asked, self._num_found
        self._num_asked = self._num_found = 0
        return counts

    def __call__(self, core: Any, batch: DeviceBatch, kept: StepFeatures) -> Any:
        """What the towers give for the micro-batch's distinct media, without gradient."""
        keys = batch.media_keys
        found = {key: kept.get(key) or self._get(key) for key in keys}
        self._num_asked += len(keys)
        self._num_found += sum(piece is not None for piece in found.values())
        missing = any(piece is None for piece in found.values())
        if batch.media_inputs is not None and self._agree(missing):
            with torch.no_grad():
                ran = run_ahead(core, batch)
                features = media_features(core, batch.media_inputs, len(batch.media_here))
                ran |= pieces_here(features, batch)
            for key, piece in ran.items():
                self._put(key, piece)
            found |= ran
        for place in batch.media_ahead:  # the cache may have dropped it when it is shown again
            kept.keep(keys[place], found[keys[place]] or {}, trained=False)
        return join_pieces([found[key] or {} for key in keys], batch.input_ids.device)

    def _get(self, key: str) -> Piece | None:
        if key in self._pieces:
            self._pieces.move_to_end(key)
            return self._pieces[key]
        if self._folder is None or not (path := self._path(key)).exists():
            return None
        from safetensors.torch import load_file

        piece: Piece = load_file(path)
        self._keep(key, piece)
        return piece

    def _put(self, key: str, piece: Piece) -> None:
        # Copied: a piece is a view of the features of a whole micro-batch, which would stay alive with it.
        copy = {name: tensor.detach().to("cpu", copy=True) for name, tensor in piece.items()}
        self._keep(key, copy)
        if self._folder is not None and not (path := self._path(key)).exists():
            from safetensors.torch import save

            aside = path.with_suffix(f".{os.getpid()}.part")
            # Not save_file, whose files are 0600: other users may share the folder.
            aside.write_bytes(save({name: tensor.contiguous() for name, tensor in copy.items()}))
            os.replace(aside, path)

    def _keep(self, key: str, piece: Piece) -> None:
        if key in self._pieces:
            self._num_bytes -= _size(self._pieces.pop(key))
        self._pieces[key] = piece
        self._num_bytes += _size(piece)
        while self._num_bytes > self._capacity:
            _, dropped = self._pieces.popitem(last=False)
            self._num_bytes -= _size(dropped)

    def _path(self, key: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()}.safetensors"


def fingerprint(parameters: Iterable[tuple[str, Tensor]], settings: str) -> str:
    """Name of the features of these weights and processor settings; a changed tower has another."""
    digest = hashlib.sha256(settings.encode())
    for name, parameter in parameters:
        digest.update(f"{name} {parameter.dtype} {tuple(parameter.shape)}".encode())
        digest.update(parameter.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]


def _size(piece: Piece) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in piece.values())
