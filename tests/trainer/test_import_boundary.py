"""A trainer rank needs neither Ray nor vLLM: it starts and trains where they are not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hidden import environment_without

HELPERS = Path(__file__).parents[1] / "helpers"

ONE_STEP = """
import socket, sys
sys.path.append(sys.argv[3])
from builders import make_config, make_group, random_image, row
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.processors.auto import open_processor
from vlrl.trainer.rank import TrainerRank

config = make_config(sys.argv[1], run={"dir": sys.argv[2]})
processor = open_processor(config)
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
rank = TrainerRank(config, processor.banned_token_ids, 0, ("127.0.0.1", port))
rank.start()
sample = processor.sample(row(images=[random_image(56, 56)]))
[batch] = pack([make_group([5, 7], sample=sample)], processor.pixels, PackOptions.of(config))
before = rank.logprobs(batch)[0]
result = rank.step(batch, "sft", 1e-3)
assert result.sums.num_tokens == len(before) == 12, result
assert rank.logprobs(batch)[0].sum() > before.sum(), "the step has learnt nothing"
"""


def test_a_rank_trains_without_ray_and_vllm(tiny_model: Path, tmp_path: Path) -> None:
    environment = environment_without(tmp_path / "hidden", ["ray", "vllm"]) | {"DS_ACCELERATOR": "cpu"}
    hidden = subprocess.run([sys.executable, "-c", "import ray"], env=environment, capture_output=True)
    assert b"No module named 'ray'" in hidden.stderr, "the test would prove nothing"
    command = [sys.executable, "-c", ONE_STEP, str(tiny_model), str(tmp_path), str(HELPERS)]
    child = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
