"""A folder at an fsspec URL, such as s3://bucket/prefix; a failure names the host, the URL and a remedy."""

from __future__ import annotations

import errno
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from vlrl.errors import ConfigError, ResourceError, VlrlError
from vlrl.storage.stopping import StopFn, Stopped

T = TypeVar("T")

PROBE_S = 60.0
"""Longest wait for the storage's first answers."""

S3_OPTIONS: Mapping[str, Any] = {
    # botocore would wait for a minute, five times.
    "config_kwargs": {"connect_timeout": 10, "read_timeout": 60, "retries": {"max_attempts": 3}},
}
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "s3": S3_OPTIONS,
    "s3a": S3_OPTIONS,
    "file": {"auto_mkdir": True},
    "local": {"auto_mkdir": True},
}
"""Of fsspec's file systems, by the protocol of a URL."""

REMEDIES: Mapping[str, str] = {
    "NoCredentialsError": "set credentials, for S3: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or AWS_PROFILE",
    "PermissionError": "the credentials do not allow it: check them, and the rights on the bucket",
    "FileNotFoundError": "there is no such bucket or folder: make it, or correct the URL",
    "ConnectionError": "it cannot be reached: check the network, and AWS_ENDPOINT_URL of an S3 not Amazon's",
}
"""By the name of an error's class, or of one that it derives from or was caused by."""
CONNECTION_ERRORS = ("EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "TimeoutError")


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file's size in bytes, and what changes with its content, as far as the storage says."""

    size: int
    tag: str


class RemoteFolder:
    """A folder of files named by their path below it; nothing is asked of the storage before it is used."""

    def __init__(self, url: str, option: str) -> None:
        """Open the file system of a URL.

        Args:
            url: of the folder, with its protocol.
            option: the config's, for messages.

        Raises:
            ConfigError: if fsspec does not know the protocol, or lacks a package for it.
        """
        import fsspec

        self.url, self._option = url.rstrip("/"), option
        protocol = url.partition("://")[0]
        try:
            self._fs, root = fsspec.core.url_to_fs(
                self.url, use_listings_cache=False, skip_instance_cache=True, **OPTIONS.get(protocol, {})
            )
        except ImportError as error:
            package = "'vlrl[s3]'" if protocol in ("s3", "s3a") else f"the package for it ({error})"
            raise ConfigError(f"{option}: {url} needs a package: pip install {package}") from error
        except ValueError as error:
            raise ConfigError(f"{option}: {url}: {error}") from error
        self._root = root.rstrip("/")

    def require_writable(self) -> None:
        """Write and remove a small object.

        Raises:
            ResourceError: if the storage does not answer, or does not let it.
        """
        name = f".vlrl-{uuid.uuid4().hex}"
        self._in_time(lambda: self.write(name, b"vlrl"))
        self._in_time(lambda: self.remove(name))

    def files(self) -> dict[str, RemoteFile]:
        """All files below the folder, by path; none if there is no such folder."""
        with self._explained("list"):
            try:
                found: Mapping[str, Mapping[str, Any]] = self._fs.find(self._root, detail=True)
            except FileNotFoundError:
                return {}
            start = len(self._root) + 1
            return {
                path[start:]: RemoteFile(int(info["size"]), _tag(info))
                for path, info in sorted(found.items())
                if len(path) > start
            }

    def read(self, name: str) -> bytes | None:
        """A file's content; None if there is none."""
        with self._explained("read", name):
            try:
                content: bytes = self._fs.cat_file(self._path(name))
            except FileNotFoundError:
                return None
            return content

    def write(self, name: str, content: bytes) -> None:
        """Write a small file at once."""
        with self._explained("write", name):
            self._fs.pipe_file(self._path(name), content)

    def upload(self, local: Path, name: str, stopped: StopFn) -> None:
        """Copy a file there.

        Raises:
            Stopped: if `stopped` says so meanwhile; what is there then may be a part of the file.
            ResourceError: if it fails.
        """
        with self._explained("write", name):
            self._fs.put_file(str(local), self._path(name), callback=_asking(stopped))

    def download(self, name: str, local: Path) -> None:
        """Copy a file from there; a full disk here is an OSError."""
        local.parent.mkdir(parents=True, exist_ok=True)
        with self._explained("read", name):
            self._fs.get_file(self._path(name), str(local))

    def remove(self, name: str) -> None:
        """Remove a file; none is not an error."""
        with self._explained("remove", name):
            try:
                self._fs.rm_file(self._path(name))
            except FileNotFoundError:
                return

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _in_time(self, work: Callable[[], T]) -> None:
        """Call `work` in a thread, as some storages try for minutes to reach a host that does not answer."""
        raised: list[BaseException] = []

        def call() -> None:
            try:
                work()
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=call, name="storage probe", daemon=True)
        thread.start()
        thread.join(PROBE_S)
        if thread.is_alive():
            raise ResourceError(
                f"{self._option}: host {socket.gethostname()} got no answer from {self.url} in {PROBE_S:g} s"
                f"; {REMEDIES['ConnectionError']}"
            )
        for error in raised:
            raise error

    @contextmanager
    def _explained(self, verb: str, name: str = "") -> Iterator[None]:
        try:
            yield
        except (VlrlError, Stopped):
            raise
        except Exception as error:  # of any class: each storage has its own
            is_full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
            if is_full and verb == "read":  # the disk here: whoever reads knows which
                raise
            what = f"{self.url}/{name}" if name else self.url
            said = f"{type(error).__name__}: {error}".strip(": ")
            raise ResourceError(
                f"{self._option}: host {socket.gethostname()} could not {verb} {what} ({said})"
                f"{_remedy(error)}"
            ) from error


def _tag(info: Mapping[str, Any]) -> str:
    """What a storage's listing says of a file's version."""
    found = (info.get(key) for key in ("ETag", "etag", "md5Hash", "LastModified", "mtime", "created"))
    return next((str(value) for value in found if value is not None), "")


def _remedy(error: BaseException | None) -> str:
    """What to do about an error, by its class and its causes'; "" if that is not known."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "; the storage is full: free some space there"
    while error is not None:
        names = [each.__name__ for each in type(error).__mro__]
        if any(name in CONNECTION_ERRORS for name in names):
            names = ["ConnectionError"]
        for name in names:
            if name in REMEDIES:
                return f"; {REMEDIES[name]}"
        error = error.__cause__ or error.__context__
    return ""


def _asking(stopped: StopFn) -> Any:
    """A callback of fsspec's that ends a transfer when it is to be given up."""
    from fsspec.callbacks import Callback

    class Asking(Callback):  # type: ignore[misc]
        def relative_update(self, inc: int = 1) -> None:
            super().relative_update(inc)
            if stopped():
                raise Stopped

    return Asking()
