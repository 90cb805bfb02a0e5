"""Which of its two model runners vLLM chooses is asked of vLLM itself."""

from __future__ import annotations

import json

import pytest

from vlrl.cli.gpu_checks import RUNNER_PROBE


def test_on_a_cpu_it_is_v1(capsys: pytest.CaptureFixture[str]) -> None:
    """There is no Triton here, and V2 needs it."""
    exec(RUNNER_PROBE, {})
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"v2": False, "triton": False}
