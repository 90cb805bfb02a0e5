"""One machine as OSWorld's getters want it, and what went wrong on the way to it.

desktop_env's calls of a machine's server catch nearly every failure and go on with None, which a metric then
scores as 0. So every request is watched: one that failed is no result.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
from desktop_env.controllers.python import PythonController


class MachineFailure(Exception):
    """The machine, or the connection to it, failed: there is no result."""


class Wire:
    """Requests to one machine's server.

    Attributes:
        failures: those that failed, in words.
        num_missing: files that the machine does not have, among those that were asked for.
    """

    def __init__(self, address: str, limit_s: float) -> None:
        """Take the server's address as it stands in a URL, and the longest wait for an answer."""
        self._address, self._limit_s = address, limit_s
        self.failures: list[str] = []
        self.num_missing = 0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch the requests that are made while it lasts."""
        plain, wire = requests.Session.request, self

        def request(session: requests.Session, method: str, url: str, **options: Any) -> Any:
            return wire._request(plain, session, method, url, options)

        requests.Session.request = request
        try:
            yield
        finally:
            requests.Session.request = plain

    def check(self) -> None:
        """Raises `MachineFailure` if a request failed."""
        if self.failures:
            raise MachineFailure(self.failures[0])

    def _request(
        self, plain: Any, session: requests.Session, method: str, url: str, options: dict[str, Any]
    ) -> Any:
        options["timeout"] = options.get("timeout") or self._limit_s
        if not url.startswith(self._address):
            return plain(session, method, url, **options)
        try:
            answer = plain(session, method, url, **options)
        except requests.RequestException as error:
            self.failures.append(f"{method.upper()} {url}: {type(error).__name__}: {error}")
            raise
        # Of a command that cannot be run, /execute says so with this status: the state of the machine.
        is_state = url.endswith("/execute") and "json" in answer.headers.get("content-type", "")
        if answer.status_code >= 500 and not is_state:
            said = answer.text[:200]
            self.failures.append(f"{method.upper()} {url}: status {answer.status_code}: {said}")
        self.num_missing += answer.status_code == 404
        return answer


class Desktop:
    """What getters take in the place of `DesktopEnv`."""

    current_use_proxy = False

    def __init__(self, machine: Mapping[str, Any]) -> None:
        """Take ip, server_port, chromium_port, vlc_port, cache_dir, and downloads: a folder of kept files."""
        self.vm_ip: str = machine["ip"]
        self.server_port: int = machine["server_port"]
        self.chromium_port: int = machine["chromium_port"]
        self.vlc_port: int = machine["vlc_port"]
        self.cache_dir: str = machine["cache_dir"]
        self._downloads = Path(machine["downloads"])
        self.controller = PythonController(self.vm_ip, self.server_port)
        self.controller.retry_times, self.controller.retry_interval = 1, 0

    @property
    def vm_platform(self) -> Any:
        """Name of its operating system."""
        return self.controller.get_vm_platform()

    @property
    def vm_screen_size(self) -> Any:
        """{"width", "height"}."""
        return self.controller.get_vm_screen_size()

    def check_port(self, port: int, what: str) -> None:
        """Raises `MachineFailure` if nothing listens on a port."""
        try:
            socket.create_connection((self.vm_ip, port), timeout=5).close()
        except OSError as error:
            raise MachineFailure(f"{self.vm_ip}:{port}: {what} cannot be reached: {error}") from error

    def fetch(self, config: Mapping[str, Any]) -> None:
        """Put a cloud_file's files into the cache folder, whole, downloaded unless they are kept.

        The getter then downloads nothing: it would leave half a file behind, and take it for whole next time.
        """
        for url, name in zip(_listed(config["path"]), _listed(config["dest"]), strict=True):
            kept = self._downloads / hashlib.sha256(url.encode()).hexdigest()
            if not kept.exists():
                self._download(url, kept)
            shutil.copyfile(kept, os.path.join(self.cache_dir, name))

    def _download(self, url: str, kept: Path) -> None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        answer = requests.get(url, stream=True)
        answer.raise_for_status()
        with tempfile.NamedTemporaryFile(dir=kept.parent, delete=False) as part:
            try:
                part.writelines(answer.iter_content(2**16))
            except BaseException:
                os.unlink(part.name)
                raise
        os.replace(part.name, kept)


def _listed(value: str | Sequence[str]) -> Sequence[str]:
    return [value] if isinstance(value, str) else value
