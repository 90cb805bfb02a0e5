"""What Ray says when it does not start, in words with a remedy."""

from __future__ import annotations

from typing import Any

import pytest
import ray
from builders import make_config

from vlrl.cluster import cluster
from vlrl.errors import EngineError


def test_a_ray_that_takes_too_long_to_start_is_an_engine_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine cannot be made that busy in a test: here are the class and the words it was seen with."""

    def late(**options: Any) -> None:
        raise Exception("The current node timed out during startup. This could happen because ...")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", late)
    words = r"Ray did not start .* timed out .* when the machine is less busy"
    with pytest.raises(EngineError, match=words), cluster(make_config()):
        pass
