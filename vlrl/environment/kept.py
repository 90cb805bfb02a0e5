"""Environments called from plain code, one for each thread, which plays episode after episode in its own."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from vlrl.environment.plain import PlainEnv


class KeptEnvs:
    """Environments of one name and options: made when a thread first asks, closed with this object."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        """Make none yet.

        Args:
            name: registered, or ./file.py:Class.
            options: the environment's own.
        """
        self._name, self._options = name, options
        self._own = threading.local()
        self._open: set[PlainEnv] = set()
        closing = weakref.finalize(self, _close, self._open)
        closing.atexit = False  # then what they hold ends with the process, in an order of its own

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process makes its own."""
        return KeptEnvs, (self._name, self._options)

    @contextmanager
    def episode(self) -> Iterator[PlainEnv]:
        """This thread's environment, for one episode; one whose episode raises is closed.

        Raises:
            ConfigError: as `PlainEnv` does; for several agents there are only `agents`, `has` and `call`.
        """
        env = getattr(self._own, "env", None) or PlainEnv(self._name, self._options, several=True)
        self._open.add(env)
        self._own.env = None
        try:
            yield env
            if env.has("end_episode"):
                env.call("end_episode")
        except BaseException:
            self._open.discard(env)
            env.close()
            raise
        self._own.env = env


def _close(envs: set[PlainEnv]) -> None:
    while envs:
        with suppress(Exception):  # of a stranger's close, when nothing is wanted of it any more
            envs.pop().close()
