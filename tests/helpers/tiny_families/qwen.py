"""Tiny Qwen-VL models of every generation."""

from __future__ import annotations

from pathlib import Path

from tiny_families.parts import CORPUS, NUM_LAYERS
from vlrl.model.tiny import build_tiny_qwen_vl


def build_qwen2_vl(path: Path) -> Path:
    """Qwen2-VL: like Qwen2.5-VL, but a vision tower without windows."""
    return build_tiny_qwen_vl("qwen2_vl", path, CORPUS, num_layers=NUM_LAYERS, vision_depth=2)


def build_qwen2_5_vl(path: Path) -> Path:
    """Qwen2.5-VL."""
    return build_tiny_qwen_vl("qwen2_5_vl", path, CORPUS, num_layers=NUM_LAYERS, vision_depth=2)


def build_qwen3_vl(path: Path) -> Path:
    """Qwen3-VL: 16-pixel patches, deepstack, interleaved rotary positions, timestamps in the prompt."""
    return build_tiny_qwen_vl("qwen3_vl", path, CORPUS, num_layers=NUM_LAYERS, vision_depth=2)


def build_qwen3_vl_moe(path: Path) -> Path:
    """Qwen3-VL with 4 experts of which 2 answer."""
    return build_tiny_qwen_vl("qwen3_vl_moe", path, CORPUS, num_layers=NUM_LAYERS, vision_depth=2)


def build_qwen3_5(path: Path) -> Path:
    """Qwen3.5: a gated delta rule in one layer of two, and of the next one's heads a quarter is rotated."""
    return build_tiny_qwen_vl("qwen3_5", path, CORPUS, num_layers=NUM_LAYERS, vision_depth=2)


def build_qwen3_5_moe(path: Path) -> Path:
    """Qwen3.5 with 4 experts of which 2 answer, and one that always does."""
    return build_tiny_qwen_vl("qwen3_5_moe", path, CORPUS, num_layers=NUM_LAYERS, vision_depth=2)
