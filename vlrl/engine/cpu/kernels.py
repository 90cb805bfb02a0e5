"""Which kernels vLLM computes with on a CPU."""

from __future__ import annotations

from vlrl.engine.cpu.gated_delta import compute_float32


def choose_kernels() -> None:
    """Change vLLM in this process, before its model is built."""
    import vlrl.engine.cpu.fused_layers  # noqa: F401 -- registers its layers

    compute_float32()
