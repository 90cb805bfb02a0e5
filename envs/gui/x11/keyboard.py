"""Keys by name and text by character, as keys of an X keyboard.

Xvfb has an American keyboard. A character that it lacks is given to a key that is free, and typed with that.
"""

from __future__ import annotations

from collections.abc import Iterator

from vlrl.envs.gui.x11.wire import Connection

_NAMED = {
    **{f"f{number}": 0xFFBD + number for number in range(1, 13)},
    **{"ctrl": 0xFFE3, "shift": 0xFFE1, "alt": 0xFFE9, "super": 0xFFEB, "enter": 0xFF0D, "tab": 0xFF09},
    **{"space": 0x20, "backspace": 0xFF08, "delete": 0xFFFF, "escape": 0xFF1B, "insert": 0xFF63},
    **{"home": 0xFF50, "end": 0xFF57, "page_up": 0xFF55, "page_down": 0xFF56, "up": 0xFF52, "down": 0xFF54},
    **{"left": 0xFF51, "right": 0xFF53, "caps_lock": 0xFFE5, "print_screen": 0xFF61, "menu": 0xFF67},
}
"""Keysyms of X11/keysymdef.h."""
_TYPED = {"\n": 0xFF0D, "\r": 0xFF0D, "\t": 0xFF09}

KeyPress = tuple[int, bool]
"""(key, whether shift is held with it)."""


class Keyboard:
    """Which key writes what."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._first = connection.keycodes[0]
        self._keys: dict[int, KeyPress] = {}
        table = connection.keyboard()
        for shift in (0, 1):
            for offset, keysyms in enumerate(table):
                if len(keysyms) > shift and keysyms[shift]:
                    self._keys.setdefault(keysyms[shift], (self._first + offset, bool(shift)))
        self._free = [self._first + offset for offset, keysyms in enumerate(table) if not any(keysyms)]
        self._lent: dict[int, int] = {}

    def named(self, name: str) -> KeyPress:
        """The key of one of actions.KEY_NAMES."""
        return self._keys[_NAMED[name] if name in _NAMED else _keysym(name)]

    def chunks(self, text: str) -> Iterator[list[KeyPress]]:
        """The keys that write a text, so many at a time that none is given another character in between.

        Before the next chunk is asked for, the apps must have read this one's keys.
        """
        keysyms = [_keysym(character) for character in text if character.isprintable() or character in _TYPED]
        start = 0
        while start < len(keysyms):
            end, new = start, list[int]()
            while end < len(keysyms):
                keysym = keysyms[end]
                if keysym not in self._keys and keysym not in self._lent and keysym not in new:
                    if len(new) == len(self._free):
                        break
                    new.append(keysym)
                end += 1
            self._lend(new)
            yield [self._keys.get(k) or (self._lent[k], False) for k in keysyms[start:end]]
            start = end

    def _lend(self, keysyms: list[int]) -> None:
        if len(self._lent) + len(keysyms) > len(self._free):
            self._lent = {}
        for keysym in keysyms:
            taken = set(self._lent.values())
            self._lent[keysym] = next(key for key in self._free if key not in taken)
            self._connection.map_keys(self._lent[keysym], [keysym])


def _keysym(character: str) -> int:
    code = ord(character)
    if character in _TYPED:
        return _TYPED[character]
    return code if 0x20 <= code <= 0x7E or 0xA0 <= code <= 0xFF else 0x0100_0000 | code
