"""Random Qwen2.5-VL models by the name of their shape: 3b and 7b are published, wide is two layers of 3b."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

PATCH, MERGE = 14, 2
TEXT = {
    "tiny": dict(hidden_size=128, intermediate_size=384, num_hidden_layers=4, num_attention_heads=4,
                 num_key_value_heads=2, vocab_size=512),
    "11m": dict(hidden_size=384, intermediate_size=1152, num_hidden_layers=6, num_attention_heads=6,
                num_key_value_heads=3, vocab_size=512),
    "mid": dict(hidden_size=512, intermediate_size=1536, num_hidden_layers=8, num_attention_heads=8,
                num_key_value_heads=4, vocab_size=32000),
    "200m": dict(hidden_size=1024, intermediate_size=3072, num_hidden_layers=16, num_attention_heads=8,
                 num_key_value_heads=4, vocab_size=512),
}  # fmt: skip
VISION = {
    "tiny": dict(depth=4, hidden_size=128, intermediate_size=256, num_heads=4, fullatt_block_indexes=[3]),
    "11m": dict(depth=4, hidden_size=128, intermediate_size=256, num_heads=4, fullatt_block_indexes=[3]),
    "mid": dict(depth=6, hidden_size=256, intermediate_size=768, num_heads=4, fullatt_block_indexes=[5]),
    "200m": dict(depth=6, hidden_size=256, intermediate_size=768, num_heads=4, fullatt_block_indexes=[5]),
}
PUBLISHED = {"3b": "Qwen/Qwen2.5-VL-3B-Instruct", "7b": "Qwen/Qwen2.5-VL-7B-Instruct"}
WIDE: dict[str, dict[str, Any]] = {
    "text_config": {"num_hidden_layers": 2},
    "vision_config": {"depth": 2, "fullatt_block_indexes": [1]},
}
IMAGE_PAD = 7


def build_model(shape: str, folder: Path, dtype: torch.dtype) -> None:
    """Write random weights of a Qwen2.5-VL shape to disk."""
    from transformers import AutoModelForImageTextToText

    torch.manual_seed(0)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = AutoModelForImageTextToText.from_config(model_config(shape), dtype=dtype)
    model.save_pretrained(folder)


def model_config(shape: str) -> Any:
    """The transformers config of a shape."""
    from transformers import AutoConfig

    return AutoConfig.for_model("qwen2_5_vl", **_tree(shape), image_token_id=IMAGE_PAD)


def _tree(shape: str) -> dict[str, Any]:
    """The config of a shape, as config.json has it."""
    if shape in TEXT:
        return _small(shape)
    from vlrl.plan.model_config import shipped

    found = shipped(PUBLISHED["3b" if shape == "wide" else shape]) or {}
    parts = {name: {**found[name], **(WIDE[name] if shape == "wide" else {})} for name in WIDE}
    dropped = ("model_type", "image_token_id")  # the stand-in is among the ids that no text has
    return {**{name: value for name, value in found.items() if name not in dropped}, **parts}


def _small(shape: str) -> dict[str, Any]:
    text = TEXT[shape]
    half = text["hidden_size"] // text["num_attention_heads"] // 2
    side = 3 * half // 8
    rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [half - 2 * side, side, side]}
    return {
        "text_config": {**text, "rope_parameters": rope, "tie_word_embeddings": True},
        "vision_config": {**VISION[shape], "out_hidden_size": text["hidden_size"]},
        "tie_word_embeddings": True,
    }
