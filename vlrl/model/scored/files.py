"""Reward models as folders: loaded from a generating model's, or from another reward model's; and written."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from vlrl.errors import ConfigError

CODE = "modeling_classifier"
"""Name of the copy of `vlrl.model.scored.classifier` in a folder."""


def load_scored(path: str, seed: int, **options: Any) -> Any:
    """The model at a path with a scalar head, which is sampled if the folder has none.

    The head's weights are N(0, 1/(hidden_size + 1)) as in Stiennon et al. (arXiv 2009.01325, Appendix B.1),
    the same on every rank.

    Args:
        path: of a folder, or a hub's name.
        seed: of a new head.
        options: for `from_pretrained`.

    Raises:
        ConfigError: for a family without a generating model in transformers, or a head of several classes.
    """
    from transformers import AutoConfig
    from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING

    from vlrl.model.scored.classifier import classifier_class, head_renaming

    trusts = options.pop("trust_remote_code", False)
    config = AutoConfig.from_pretrained(path, trust_remote_code=trusts)
    if type(config) not in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
        raise ConfigError(
            f"model.path={path!r}: a model of type {config.model_type!r} comes with code of its own, of "
            "which no reward model can be made; take one that transformers has itself"
        )
    config.id2label, config.label2id = {0: "reward"}, {"reward": 0}
    made = classifier_class(MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING[type(config)])
    model, found = made.from_pretrained(path, config=config, output_loading_info=True, **options)
    if "score.weight" in found["missing_keys"]:
        fan_in = model.score.in_features
        generator = torch.Generator().manual_seed(seed)
        weights = torch.randn(1, fan_in, generator=generator) / (fan_in + 1) ** 0.5
        model.score.weight.data = weights.to(model.score.weight.dtype)
        model._weight_conversions[:0] = head_renaming(config.model_type)
    return model


def is_scored(model: Any) -> bool:
    """Whether the head gives scores."""
    return hasattr(model, "score")


def save_scored(model: Any, path: str, state: Mapping[str, Any]) -> None:
    """Write the folder that transformers and vLLM load as a sequence classifier, of one class: its code too.

    Args:
        model: of `load_scored`.
        path: of the folder.
        state: the whole weights, by the model's own names.
    """
    from vlrl.model.scored import classifier

    model.config.auto_map = {"AutoModelForSequenceClassification": f"{CODE}.{type(model).__name__}"}
    model.save_pretrained(path, state_dict=state)
    shutil.copyfile(str(classifier.__file__), Path(path) / f"{CODE}.py")
