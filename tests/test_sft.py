"""When a warm start ends."""

from __future__ import annotations

import pytest

from vlrl.sft import WINDOW, has_reached


@pytest.mark.parametrize(
    ("losses", "until_loss", "expected"),
    [
        ([0.5] * WINDOW, 0.5, True),
        ([0.5] * (WINDOW - 1), 0.5, False),  # too few to tell
        ([0.1] * (WINDOW - 1) + [9.0], 0.5, False),  # the mean counts, not most of them
        ([9.0] * 5 + [0.4] * WINDOW, 0.5, True),  # and that of the last alone
        ([0.0] * 100, None, False),
        ([], 1.0, False),
    ],
)
def test_the_mean_loss_of_the_last_steps_decides(
    losses: list[float], until_loss: float | None, expected: bool
) -> None:
    assert has_reached(losses, until_loss) is expected
