"""TensorBoard: RUN/tensorboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vlrl.tracking.sinks.rollout_rows import COLUMNS, RolloutRow
from vlrl.tracking.sinks.sink import SinkRun

FLUSH_S = 10


class TensorBoardSink:
    """Scalars, and rollouts as a table of Markdown with the images beside it."""

    name = "TensorBoard"

    def __init__(self, run: SinkRun) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._run, self._open = run, SummaryWriter

    def open(self) -> None:
        """Open the file of events; what an interrupted run wrote of the steps to come is hidden."""
        folder = str(self._run.run_dir / "tensorboard")
        self._writer: Any = self._open(folder, purge_step=self._run.first_step or None, flush_secs=FLUSH_S)

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Add each number as a scalar."""
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step)

    def log_rollouts(self, step: int, rows: Sequence[RolloutRow]) -> None:
        """Add the table, and each row's first image."""
        import numpy as np
        from PIL import Image

        lines = [_line(COLUMNS), _line(["---"] * len(COLUMNS)), *(_line(row.cells()) for row in rows)]
        self._writer.add_text("rollouts", "\n".join(lines), step)
        for number, row in enumerate(rows):
            if row.images:
                with Image.open(row.images[0]) as image:
                    pixels = np.asarray(image.convert("RGB"))
                self._writer.add_image(f"rollouts/{number}", pixels, step, dataformats="HWC")

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()


def _line(cells: Sequence[Any]) -> str:
    texts = (str(cell).replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ⏎ ") for cell in cells)
    return f"| {' | '.join(texts)} |"
