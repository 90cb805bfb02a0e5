"""Environments in threads: those in use, and idle ones for the next episode."""

from __future__ import annotations

import time

from vlrl.environment.host.inline import CLOSE_LIMIT_S
from vlrl.environment.host.key import key_of
from vlrl.environment.host.thread import EnvInThread
from vlrl.errors import ConfigError
from vlrl.types import EnvTask


class EnvThreads:
    """A pool of at most `size` environments, in use and warm, beside those that are being closed."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._in_use: set[EnvInThread] = set()
        self._warm: list[EnvInThread] = []
        self._closed = False

    async def take(self, spec: EnvTask, limit_s: float) -> EnvInThread | None:
        """A warm environment or a new one; None if it is async, and so not for threads.

        Raises:
            EnvFailure, ConfigError: of its constructor.
        """
        key = _key(spec)
        for env in reversed(self._warm):
            if env.key == key:
                self._warm.remove(env)
                self._in_use.add(env)
                return env
        if self._warm and len(self._in_use) + len(self._warm) >= self._size:
            self._warm.pop(0).dismiss()
        env = EnvInThread(spec, key, self._keep)
        self._in_use.add(env)  # before it is open: others may ask meanwhile
        is_open = False
        try:
            is_open = await env.open(limit_s)
        finally:
            if not is_open:
                self._in_use.discard(env)
        return env if is_open else None

    def _keep(self, env: EnvInThread, healthy: bool) -> bool:
        self._in_use.discard(env)
        kept = healthy and env.key is not None and not self._closed
        if kept:
            self._warm.append(env)
        return kept

    def close(self) -> None:
        """Close those that are warm, at once; one that takes too long is left behind."""
        self._closed = True
        for env in self._warm:
            env.dismiss()
        until = time.monotonic() + CLOSE_LIMIT_S
        for env in self._warm:
            env.join(max(0.0, until - time.monotonic()))
        self._warm.clear()


def _key(spec: EnvTask) -> tuple[str, str] | None:
    try:
        return key_of(spec)
    except ConfigError:  # options that cannot be compared
        return None
