"""What Ray says when it does not start, in words with a remedy."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import ray
from builders import make_config
from ray import cloudpickle

from vlrl.cluster import cluster, driver_place, fetch, spawn
from vlrl.errors import EngineError

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # actors' processes do not find this file


def test_a_ray_that_takes_too_long_to_start_is_an_engine_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine cannot be made that busy in a test: here are the class and the words it was seen with."""

    def late(**options: Any) -> None:
        raise Exception("The current node timed out during startup. This could happen because ...")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", late)
    words = r"Ray did not start .* timed out .* when the machine is less busy"
    with pytest.raises(EngineError, match=words), cluster(make_config()):
        pass


def test_a_cluster_on_this_machine_is_not_joined_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray joins one that `ray start` has left, or that RAY_ADDRESS names, unless told otherwise."""
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    told: dict[str, Any] = {}

    def init(**options: Any) -> None:
        told.update(options)
        raise ConnectionError

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(EngineError), cluster(make_config()):
        pass
    assert told["address"] == "local"


class Unpicklable(ValueError):
    """Stands for pydantic's errors, which vLLM raises for arguments that do not go together."""

    def __reduce__(self) -> Any:
        raise TypeError("cannot be pickled")


class Refusing:
    def start(self) -> None:
        raise Unpicklable("the cache is too small\n  for max_model_len")


def test_an_exception_that_cannot_be_pickled_is_told_in_its_own_words(local_ray: None) -> None:
    actor = spawn(Refusing, place=driver_place(), env={})
    with pytest.raises(EngineError) as raised:
        fetch(actor.start.remote())
    kind, _, text = str(raised.value).partition(": ")
    assert kind.endswith("Unpicklable")
    assert text.strip() == "the cache is too small\n  for max_model_len"
