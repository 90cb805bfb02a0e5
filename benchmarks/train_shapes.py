"""Random Qwen2.5-VL models by the name of their shape; 3b and 7b are the published ones."""

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
    "3b": dict(hidden_size=2048, intermediate_size=11008, num_hidden_layers=36, num_attention_heads=16,
               num_key_value_heads=2, vocab_size=151936),
    "7b": dict(hidden_size=3584, intermediate_size=18944, num_hidden_layers=28, num_attention_heads=28,
               num_key_value_heads=4, vocab_size=152064),
}  # fmt: skip
VISION = {
    "tiny": dict(depth=4, hidden_size=128, intermediate_size=256, num_heads=4, fullatt_block_indexes=[3]),
    "11m": dict(depth=4, hidden_size=128, intermediate_size=256, num_heads=4, fullatt_block_indexes=[3]),
    "mid": dict(depth=6, hidden_size=256, intermediate_size=768, num_heads=4, fullatt_block_indexes=[5]),
    "3b": dict(depth=32, hidden_size=1280, intermediate_size=3420, num_heads=16),
    "7b": dict(depth=32, hidden_size=1280, intermediate_size=3420, num_heads=16),
}
IMAGE_PAD = 7


def build_model(shape: str, folder: Path, dtype: torch.dtype) -> None:
    """Write random weights of a Qwen2.5-VL shape to disk."""
    from transformers import AutoModelForImageTextToText, Qwen2_5_VLConfig

    text: dict[str, Any] = dict(TEXT[shape])
    half = text["hidden_size"] // text["num_attention_heads"] // 2
    side = 3 * half // 8
    text["rope_parameters"] = {
        "rope_type": "default",
        "rope_theta": 1e6,
        "mrope_section": [half - 2 * side, side, side],
    }
    config = Qwen2_5_VLConfig(
        text_config={**text, "tie_word_embeddings": shape != "7b"},
        vision_config={**VISION[shape], "out_hidden_size": text["hidden_size"]},
        image_token_id=IMAGE_PAD,
        tie_word_embeddings=shape != "7b",
    )
    torch.manual_seed(0)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = AutoModelForImageTextToText.from_config(config, dtype=dtype)
    model.save_pretrained(folder)
