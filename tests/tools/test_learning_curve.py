"""tools/learning_curve.py: a run's metrics as the image in README.md."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
from digit_run import write_run
from PIL import Image

FILE = Path(__file__).parents[2] / "tools" / "learning_curve.py"


def test_reward_and_accuracy_are_drawn(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    path = tmp_path / "curve.png"
    subprocess.run([sys.executable, FILE, tmp_path / "run", path], check=True)
    image = np.asarray(Image.open(path).convert("RGB"))
    assert image.shape[1] > 1000 and len(np.unique(image.reshape(-1, 3), axis=0)) > 50
