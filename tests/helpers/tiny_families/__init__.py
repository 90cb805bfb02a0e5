"""A tiny random model of every family vlrl knows: real architecture, real processor, published prompt format.

Each builder writes a folder that transformers and vLLM load like a hub model. The weights are random and
under three million; an image stays a few dozen tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tiny_families.gemma import build_gemma3, build_gemma4
from tiny_families.llava import build_llava_next, build_llava_onevision
from tiny_families.minicpmv import build_minicpmv4_6
from tiny_families.omni import build_qwen2_5_omni
from tiny_families.parts import CORPUS
from tiny_families.patches import build_glm4v, build_glm4v_moe, build_mistral3
from tiny_families.qwen import (
    build_qwen2_5_vl,
    build_qwen2_vl,
    build_qwen3_5,
    build_qwen3_5_moe,
    build_qwen3_vl,
    build_qwen3_vl_moe,
)
from tiny_families.tiles import (
    build_idefics3,
    build_internvl,
    build_internvl3_5,
    build_internvl3_5_moe,
    build_smolvlm,
)

__all__ = ["BUILDERS", "CORPUS", "build_glm4v", "build_qwen2_5_vl", "build_qwen3_vl"]

BUILDERS: dict[str, Callable[[Path], Path]] = {
    "qwen2_vl": build_qwen2_vl,
    "qwen2_5_vl": build_qwen2_5_vl,
    "qwen2_5_omni": build_qwen2_5_omni,
    "qwen3_vl": build_qwen3_vl,
    "qwen3_vl_moe": build_qwen3_vl_moe,
    "qwen3_5": build_qwen3_5,
    "qwen3_5_moe": build_qwen3_5_moe,
    "glm4v": build_glm4v,
    "glm4v_moe": build_glm4v_moe,
    "internvl": build_internvl,
    "internvl3_5": build_internvl3_5,
    "internvl3_5_moe": build_internvl3_5_moe,
    "smolvlm": build_smolvlm,
    "idefics3": build_idefics3,
    "minicpmv4_6": build_minicpmv4_6,
    "mistral3": build_mistral3,
    "llava_next": build_llava_next,
    "llava_onevision": build_llava_onevision,
    "gemma3": build_gemma3,
    "gemma4": build_gemma4,
}
"""A model type's tiny model."""
