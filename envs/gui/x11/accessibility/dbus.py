"""The part of D-Bus that asks the apps for their accessibility trees: calls and their replies.

https://dbus.freedesktop.org/doc/dbus-specification.html, little-endian both ways. What a program on the
desktop sends is data: lengths are bounded by the message, and the message by MOST_BYTES.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

MOST_BYTES = 1 << 24
_CALL, _REPLY, _ERROR = 1, 2, 3
_PATH, _INTERFACE, _MEMBER, _REPLY_SERIAL, _DESTINATION, _SIGNATURE = 1, 2, 3, 5, 6, 8
_NUMBERS = {"y": "<B", "b": "<I", "n": "<h", "q": "<H", "i": "<i", "u": "<I", "x": "<q", "t": "<Q", "d": "<d"}
_ALIGNED = {"y": 1, "g": 1, "v": 1, "n": 2, "q": 2, "x": 8, "t": 8, "d": 8, "(": 8, "{": 8}


class BusError(Exception):
    """The bus hung up, was late, or sent what is no message."""


class BusCall(NamedTuple):
    """A method call; arguments are strings and numbers, as the signature says (s, o, i, u)."""

    destination: str
    path: str
    interface: str
    member: str
    signature: str = ""
    arguments: tuple[str | int, ...] = ()


class Bus:
    """A connection."""

    def __init__(self, path: str, limit_s: float) -> None:
        """Connect.

        Args:
            path: of the socket.
            limit_s: for each round of calls.

        Raises:
            BusError: if there is no bus.
        """
        self._limit_s, self._serial, self._unread = limit_s, 0, b""
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.settimeout(limit_s)
            self._socket.connect(path)
            # From outside the box we are nobody's user in there: the bus takes anyone.
            self._socket.sendall(b"\0AUTH ANONYMOUS 766c726c\r\n")
            if not self._socket.recv(1 << 12).startswith(b"OK"):
                raise BusError("the bus lets nobody in")
            self._socket.sendall(b"BEGIN\r\n")
            self.ask(
                [BusCall("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello")]
            )
        except (OSError, BusError) as error:
            self._socket.close()
            raise BusError(str(error)) from error

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def ask(self, calls: Sequence[BusCall]) -> list[list[Any] | None]:
        """Make calls, all at once; their results, None for one that failed.

        Raises:
            BusError: if they do not all come in time.
        """
        first = self._serial + 1
        self._serial += len(calls)
        deadline = time.monotonic() + self._limit_s
        results: dict[int, list[Any] | None] = {}
        try:
            self._socket.settimeout(self._limit_s)
            self._socket.sendall(b"".join(_message(first + n, call) for n, call in enumerate(calls)))
            while len(results) < len(calls):
                kind, fields, body = self._next(deadline)
                serial = fields.get(_REPLY_SERIAL, 0)
                if kind in (_REPLY, _ERROR) and first <= serial <= self._serial:
                    good = kind == _REPLY
                    results[serial] = _Reader(body).values(fields.get(_SIGNATURE, "")) if good else None
        except (OSError, struct.error, IndexError, UnicodeDecodeError, KeyError) as error:
            raise BusError(f"the bus: {error}") from error
        return [results[first + n] for n in range(len(calls))]

    def _next(self, deadline: float) -> tuple[int, dict[int, Any], bytes]:
        self._read(16, deadline)
        _, kind, _, _, body_size, _, fields_size = struct.unpack_from("<BBBBIII", self._unread)
        begin = 16 + _padded(fields_size, 8)
        if begin + body_size > MOST_BYTES:
            raise BusError("too long a message")
        self._read(begin + body_size, deadline)
        message, self._unread = self._unread[: begin + body_size], self._unread[begin + body_size :]
        fields = _Reader(message[:begin], 12).values("a(yv)")[0]
        return kind, dict(map(tuple, fields)), message[begin:]

    def _read(self, size: int, deadline: float) -> None:
        while len(self._unread) < size:
            self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            data = self._socket.recv(1 << 16)
            if not data:
                raise BusError("the bus hung up")
            self._unread += data


class _Reader:
    """Values from bytes."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data, self._at = data, at

    def values(self, signature: str) -> list[Any]:
        return [self._value(one) for one in _parts(signature)]

    def _value(self, kind: str) -> Any:
        self._at = _padded(self._at, _ALIGNED.get(kind[0], 4))
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        if kind in "so":
            return self._text(self._number("<I"))
        if kind == "g":
            return self._text(self._number("<B"))
        if kind == "v":
            return self._value(self._value("g"))
        if kind[0] == "a":
            return self._array(kind[1:])
        return self.values(kind[1:-1])  # a struct

    def _array(self, kind: str) -> list[Any]:
        size = self._number("<I")
        self._at = _padded(self._at, _ALIGNED.get(kind[0], 4))
        end, found = self._at + size, []
        while self._at < end:
            found.append(self._value(kind))
        return found

    def _number(self, kind: str) -> Any:
        (number,) = struct.unpack_from(kind, self._data, self._at)
        self._at += struct.calcsize(kind)
        return number

    def _text(self, size: int) -> str:
        text = self._data[self._at : self._at + size].decode()
        self._at += size + 1
        return text


def _parts(signature: str) -> Iterable[str]:
    """The complete types of a signature, one by one."""
    begin = 0
    while begin < len(signature):
        end = begin
        while signature[end] == "a":
            end += 1
        depth = 0
        while True:
            depth += (signature[end] in "({") - (signature[end] in ")}")
            end += 1
            if depth == 0:
                break
        yield signature[begin:end]
        begin = end


def _message(serial: int, call: BusCall) -> bytes:
    body = b""
    for kind, argument in zip(call.signature, call.arguments, strict=True):
        body = body.ljust(_padded(len(body), 4), b"\0")
        body += _string(str(argument)) if kind in "so" else struct.pack(_NUMBERS[kind], argument)
    fields = b""
    for code, kind, value in (
        *((_PATH, "o", call.path), (_INTERFACE, "s", call.interface), (_MEMBER, "s", call.member)),
        *((_DESTINATION, "s", call.destination), (_SIGNATURE, "g", call.signature)),
    ):
        written = bytes([len(value)]) + value.encode() + b"\0" if kind == "g" else _string(value)
        fields = (
            fields.ljust(_padded(len(fields), 8), b"\0") + bytes([code, 1]) + kind.encode() + b"\0" + written
        )
    head = struct.pack("<cBBBIII", b"l", _CALL, 0, 1, len(body), serial, len(fields)) + fields
    return head.ljust(_padded(len(head), 8), b"\0") + body


def _string(text: str) -> bytes:
    return struct.pack("<I", len(text.encode())) + text.encode() + b"\0"


def _padded(size: int, unit: int) -> int:
    return -(-size // unit) * unit
