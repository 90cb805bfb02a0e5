"""Keys of actions as the browser names them, by the layout of an American keyboard."""

from __future__ import annotations

from dataclasses import dataclass

MODIFIER_BITS = {"alt": 1, "ctrl": 2, "super": 4, "shift": 8}


@dataclass(frozen=True, slots=True)
class BrowserKey:
    """A key: DOM's `key` and `code`, its Windows number, the text that it types if any."""

    key: str
    code: str
    number: int
    text: str = ""


_SHIFTED = dict(zip("`1234567890-=[]\\;',./", '~!@#$%^&*()_+{}|:"<>?', strict=True))
_PUNCTUATION = {
    "`": ("Backquote", 192),
    "-": ("Minus", 189),
    "=": ("Equal", 187),
    "[": ("BracketLeft", 219),
    "]": ("BracketRight", 221),
    "\\": ("Backslash", 220),
    ";": ("Semicolon", 186),
    "'": ("Quote", 222),
    ",": ("Comma", 188),
    ".": ("Period", 190),
    "/": ("Slash", 191),
}
_NAMED = {
    "enter": BrowserKey("Enter", "Enter", 13, "\r"),
    "tab": BrowserKey("Tab", "Tab", 9),
    "space": BrowserKey(" ", "Space", 32, " "),
    "backspace": BrowserKey("Backspace", "Backspace", 8),
    "delete": BrowserKey("Delete", "Delete", 46),
    "escape": BrowserKey("Escape", "Escape", 27),
    "insert": BrowserKey("Insert", "Insert", 45),
    "home": BrowserKey("Home", "Home", 36),
    "end": BrowserKey("End", "End", 35),
    "page_up": BrowserKey("PageUp", "PageUp", 33),
    "page_down": BrowserKey("PageDown", "PageDown", 34),
    "up": BrowserKey("ArrowUp", "ArrowUp", 38),
    "down": BrowserKey("ArrowDown", "ArrowDown", 40),
    "left": BrowserKey("ArrowLeft", "ArrowLeft", 37),
    "right": BrowserKey("ArrowRight", "ArrowRight", 39),
    "caps_lock": BrowserKey("CapsLock", "CapsLock", 20),
    "print_screen": BrowserKey("PrintScreen", "PrintScreen", 44),
    "menu": BrowserKey("ContextMenu", "ContextMenu", 93),
    "ctrl": BrowserKey("Control", "ControlLeft", 17),
    "shift": BrowserKey("Shift", "ShiftLeft", 16),
    "alt": BrowserKey("Alt", "AltLeft", 18),
    "super": BrowserKey("Meta", "MetaLeft", 91),
}


def _table() -> dict[str, BrowserKey]:
    keys = dict(_NAMED)
    for number in range(1, 13):
        keys[f"f{number}"] = BrowserKey(f"F{number}", f"F{number}", 111 + number)
    for letter in "abcdefghijklmnopqrstuvwxyz":
        for text in (letter, letter.upper()):
            keys[text] = BrowserKey(text, f"Key{letter.upper()}", ord(letter.upper()), text)
    for digit in "0123456789":
        keys[digit] = BrowserKey(digit, f"Digit{digit}", ord(digit), digit)
    for sign, (code, number) in _PUNCTUATION.items():
        keys[sign] = BrowserKey(sign, code, number, sign)
    for plain, shifted in _SHIFTED.items():
        keys[shifted] = BrowserKey(shifted, keys[plain].code, keys[plain].number, shifted)
    return keys


KEYS = _table()
"""Every name of KEY_NAMES, and capital letters; " " is "space"."""


def shifted(key: BrowserKey) -> BrowserKey:
    """The key with shift held."""
    text = key.text.upper() if key.text.isalpha() else _SHIFTED.get(key.text, key.text)
    return KEYS.get(text, key) if text != key.text else key
