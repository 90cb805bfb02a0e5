"""Which machine an episode has: one that no other episode on this host has, from its reset to its end."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from vlrl.environment.host.failure import EnvFailure
from vlrl.errors import ConfigError

POLL_S = 0.05


class Machines:
    """Addresses of machines that are alike; a lock file says which is taken, in whatever process.

    The servers of OSWorld, OSGym and AndroidWorld do not distinguish clients: two would share one desktop.

    Attributes:
        urls: of all.
        index: of the one that was taken last, in urls.
    """

    def __init__(self, urls: Sequence[str], what: str) -> None:
        """Take the addresses.

        Raises:
            ConfigError: if there is none.
        """
        if isinstance(urls, str) or not urls:
            raise ConfigError(f"{what}: give urls as a list of at least one address")
        self.urls = tuple(urls)
        self._what = what
        self.index = 0
        self._lock = -1

    def take(self, seed: int, limit_s: float) -> str:
        """A machine of one's own; waits for one.

        Args:
            seed: says with which the search begins, so that episodes spread.
            limit_s: longest wait.

        Raises:
            EnvFailure: if there is none in time.
        """
        self.give_back()
        until = time.monotonic() + limit_s
        start = seed % len(self.urls)
        while True:
            for turn in range(len(self.urls)):
                self.index = (start + turn) % len(self.urls)
                if self._locked(self.urls[self.index]):
                    return self.urls[self.index]
            if time.monotonic() + POLL_S >= until:
                taken = f"all of {len(self.urls)} machines are in use for {limit_s:g} s"
                remedy = "give more urls, or lower episodes.max_episodes"
                raise EnvFailure("hung", f"{self._what}: {taken}; {remedy}")
            time.sleep(POLL_S)

    def give_back(self) -> None:
        """Let others have it; safe to call twice."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _locked(self, url: str) -> bool:
        name = hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:16]
        path = Path(tempfile.gettempdir()) / f"vlrl-machine-{os.getuid()}-{name}.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._lock = descriptor
        return True
