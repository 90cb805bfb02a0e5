"""The X protocol as far as a desktop is driven by it: input, windows, properties, the keyboard's mapping.

Written out here, since it is little and Python's X libraries are slow to load and to send. Numbers of
requests and their layouts are those of the X protocol's encoding appendix (X11R6) and of the XTEST extension.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence

REPLY_S = 20.0
"""Within this the server answers, or it counts as hung."""

KEY_PRESS, KEY_RELEASE, BUTTON_PRESS, BUTTON_RELEASE, MOTION = 2, 3, 4, 5, 6
_ANY_PROPERTY_TYPE = 0
_INPUT_OUTPUT = 1
_BACKGROUND_PIXEL = 2
_MOST_UNSENT = 1 << 15
_REVERT_TO_PARENT = 2
_SUBSTRUCTURE = 1 << 19 | 1 << 20  # SubstructureNotify and SubstructureRedirect


class XError(Exception):
    """The server answered with an error, or not at all."""


class Connection:
    """A client of an X server. Not for several threads at once.

    Attributes:
        root: the root window.
        keycodes: (first, last) key of the keyboard.
    """

    def __init__(self, path: str) -> None:
        """Connect to a server's socket.

        Raises:
            OSError: if nobody listens there.
            XError: if the server turns us away.
        """
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._sequence, self._unsent = 0, b""
        try:
            self._socket.settimeout(REPLY_S)
            self._socket.connect(path)
            self._set_up()
            self._atoms: dict[str, int] = {}
            self._xtest = self._extension("XTEST")
        except BaseException:
            self._socket.close()
            raise

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def sync(self) -> None:
        """Return when the server has done everything sent before."""
        self.focus()

    def fake(self, kind: int, detail: int = 0, x: int = 0, y: int = 0) -> None:
        """One event of XTEST: KEY_PRESS … MOTION; detail is the key, the button, or 0 for a place."""
        body = struct.pack("<BBxxII8xhh7xB", kind, detail, 0, self.root, x, y, 0)
        self._send(self._xtest, 2, body)

    def pointer(self) -> tuple[int, int]:
        """Where the pointer is."""
        x, y = struct.unpack_from("<hh", self._ask(38, 0, struct.pack("<I", self.root)), 16)
        return x, y

    def atom(self, name: str) -> int:
        """The number of a name."""
        if name not in self._atoms:
            data = name.encode()
            reply = self._ask(16, 0, struct.pack("<Hxx", len(data)) + _padded(data))
            self._atoms[name] = struct.unpack_from("<I", reply, 8)[0]
        return self._atoms[name]

    def property(self, window: int, name: str) -> bytes:
        """A window's property; b"" if it, or the window, does not exist. At most 64 KiB."""
        body = struct.pack("<IIIII", window, self.atom(name), _ANY_PROPERTY_TYPE, 0, 1 << 14)
        try:
            reply = self._ask(20, 0, body)
        except XError:  # the window was closed since we heard of it
            return b""
        size, length = reply[1] // 8, struct.unpack_from("<I", reply, 16)[0]
        return reply[32 : 32 + size * length]

    def cardinals(self, window: int, name: str) -> tuple[int, ...]:
        """A property of 32-bit numbers: windows, atoms, counts."""
        data = self.property(window, name)
        return struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4])

    def box(self, window: int) -> tuple[int, int, int, int] | None:
        """(x0, y0, x1, y1) of a window on the screen; None if it is gone."""
        try:
            width, height = struct.unpack_from("<HH", self._ask(14, 0, struct.pack("<I", window)), 16)
            body = struct.pack("<IIhh", window, self.root, 0, 0)
            x, y = struct.unpack_from("<hh", self._ask(40, 0, body), 12)
        except XError:
            return None
        return x, y, x + width, y + height

    def show_window(self, window: int | None = None) -> int:
        """Map a window; without one, a new one of 1×1 pixel."""
        if window is None:
            window = self._id_base | 1
            body = struct.pack("<IIhhHHHHII", window, self.root, 0, 0, 1, 1, 0, _INPUT_OUTPUT, 0, 0)
            self._send(1, 0, body)
        self._send(8, 0, struct.pack("<I", window))
        return window

    def hide_window(self, window: int) -> None:
        """Unmap it, and notify the window manager (ICCCM 4.1.4)."""
        self._send(10, 0, struct.pack("<I", window))

    def destroy_window(self, window: int) -> None:
        """Forget it."""
        self._send(4, 0, struct.pack("<I", window))

    def paint_root(self, colour: int) -> None:
        """Fill the root window with 0xRRGGBB."""
        self._send(2, 0, struct.pack("<III", self.root, _BACKGROUND_PIXEL, colour))
        self._send(61, 0, struct.pack("<IhhHH", self.root, 0, 0, 0, 0))

    def tell_root(self, window: int, name: str, *data: int) -> None:
        """A client message about a window to the window manager (EWMH)."""
        values = [*data, 0, 0, 0, 0, 0][:5]
        event = struct.pack("<BBHIIIIIII", 33, 32, 0, window, self.atom(name), *values)
        self._send(25, 0, struct.pack("<II", self.root, _SUBSTRUCTURE) + event)

    def focus(self) -> int:
        """The window that keys go to; 0 and 1 are the protocol's None and PointerRoot."""
        return int(struct.unpack_from("<I", self._ask(43, 0, b""), 8)[0])  # GetInputFocus

    def give_focus(self, window: int) -> None:
        """Let keys go to a window, later to its parent; nothing happens if it is not on the screen."""
        self._send(42, _REVERT_TO_PARENT, struct.pack("<II", window, 0))
        self.sync()

    def same_client(self, one: int, other: int) -> bool:
        """Whether two windows were made by the same program."""
        return (one ^ other) & ~self._id_mask == 0

    def keyboard(self) -> list[tuple[int, ...]]:
        """The keysyms of every key from the first, by shift level; 0 where there is none."""
        first, last = self.keycodes
        count = last - first + 1
        reply = self._ask(101, 0, struct.pack("<BBxx", first, count))
        width = reply[1]
        keysyms = struct.unpack_from(f"<{width * count}I", reply, 32)
        return [keysyms[i * width : (i + 1) * width] for i in range(count)]

    def map_keys(self, first: int, keysyms: Sequence[int]) -> None:
        """Let the keys from `first` write these keysyms, with and without shift."""
        pairs = [keysym for one in keysyms for keysym in (one, one)]
        body = struct.pack("<BBxx", first, 2) + struct.pack(f"<{len(pairs)}I", *pairs)
        self._send(100, len(keysyms), body)

    def _set_up(self) -> None:
        self._socket.sendall(struct.pack("<BxHHHHxx", ord("l"), 11, 0, 0, 0))
        accepted, reason_length, _, _, length = struct.unpack("<BBHHH", self._read(8))
        data = self._read(length * 4)
        if accepted != 1:
            raise XError(f"refused: {data[:reason_length].decode(errors='replace')}")
        self._id_base: int
        self._id_mask: int
        self._id_base, self._id_mask = struct.unpack_from("<II", data, 4)
        vendor_length, num_formats = struct.unpack_from("<H", data, 16)[0], data[21]
        self.keycodes = data[26], data[27]
        self.root = struct.unpack_from("<I", data, 32 + (vendor_length + 3) // 4 * 4 + 8 * num_formats)[0]

    def _extension(self, name: str) -> int:
        reply = self._ask(98, 0, struct.pack("<Hxx", len(name)) + _padded(name.encode()))
        if not reply[8]:
            raise XError(f"has no extension {name}")
        return reply[9]

    def _send(self, opcode: int, detail: int, body: bytes) -> None:
        """Keep a request for the next `_ask`: a double click in two pieces might be two clicks."""
        self._unsent += struct.pack("<BBH", opcode, detail, 1 + len(body) // 4) + body
        self._sequence = (self._sequence + 1) & 0xFFFF
        if len(self._unsent) > _MOST_UNSENT:
            self._flush()

    def _flush(self) -> None:
        data, self._unsent = self._unsent, b""
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise XError(f"hung up: {error}") from error

    def _ask(self, opcode: int, detail: int, body: bytes) -> bytes:
        """Send a request and read up to its reply; errors of earlier requests without one are dropped."""
        self._send(opcode, detail, body)
        self._flush()
        while True:
            packet = self._read(32)
            kind, sequence = packet[0], struct.unpack_from("<H", packet, 2)[0]
            if kind == 1:
                packet += self._read(4 * struct.unpack_from("<I", packet, 4)[0])
            if sequence == self._sequence and kind == 1:
                return packet
            if sequence == self._sequence and kind == 0:
                raise XError(f"error {packet[1]} for request {opcode}")

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            try:
                more = self._socket.recv(count - len(data))
            except OSError as error:
                raise XError(f"did not answer: {error}") from error
            if not more:
                raise XError("hung up")
            data += more
        return data


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
