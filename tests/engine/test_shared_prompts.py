"""The completions of a group share their prompt: images are encoded once, whole blocks computed once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from vlrl.engine.arguments import CPU_BLOCK

SIZE = 4


@pytest.mark.slow
def test_an_image_is_encoded_once_and_whole_blocks_of_a_prompt_are_computed_once(
    tiny_model: Path, root: Path
) -> None:
    """Counted in a real engine, of a group's requests that arrive together."""
    program = root / "tests" / "helpers" / "counted_engine.py"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    child = subprocess.run(
        [sys.executable, str(program), str(tiny_model), str(SIZE)],
        stdout=subprocess.PIPE, text=True, check=True, env=environment,
    )  # fmt: skip
    found = json.loads(child.stdout.splitlines()[-1])
    assert found["images"] == found["distinct_images"] == 3
    assert found["distinct_completions"] > SIZE
    first = 0
    for length in found["prompts"]:
        assert length > CPU_BLOCK
        shared = (length - 1) // CPU_BLOCK * CPU_BLOCK  # a request computes its last token itself
        first += length + (SIZE - 1) * (length - shared)
    assert found["tokens"][0] == first
