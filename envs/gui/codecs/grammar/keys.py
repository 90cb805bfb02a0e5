"""What grammars call the keys of a keyboard, and what they are called in KEY_NAMES of vlrl.envs.gui.actions.

Names are looked up in small letters. Sources, facts only: KEYBOARD_KEYS of xlang-ai/OSWorld
desktop_env/actions.py (which is pyautogui's list), the KeyboardEvent.key names in ServiceNow/BrowserGym
browsergym/core/src/browsergym/core/action/functions.py, WEBDRIVER_SPECIAL_KEYS of
Farama-Foundation/miniwob-plusplus miniwob/constants.py, and X11's keysyms, which models know from xdotool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

from vlrl.envs.gui.actions import KEY_NAMES, Modifier

MAX_CHORD = 6
"""Most keys of one chord."""

Vocabulary = Literal["pyautogui", "playwright", "webdriver"]

_NAMED: Mapping[str, str] = {
    "ctrl": "control ctrlleft ctrlright ctrl_l ctrl_r control_l control_r leftcontrol rightcontrol "
    "controlleft controlright controlormeta",
    "shift": "shiftleft shiftright shift_l shift_r leftshift rightshift",
    "alt": "altleft altright alt_l alt_r altgr leftalt rightalt option optionleft optionright alt_gr",
    "super": "win windows winleft winright super_l super_r cmd command meta metaleft metaright meta_l meta_r "
    "rightmeta os",
    "enter": "return \n \r kp_enter numpadenter linefeed",
    "tab": "\t kp_tab",
    "space": "spacebar",
    "backspace": "back_space bksp",
    "delete": "del kp_delete numpaddelete",
    "escape": "esc",
    "insert": "ins kp_insert numpadinsert",
    "home": "kp_home numpadhome",
    "end": "kp_end numpadend",
    "page_up": "pageup pgup prior kp_page_up kp_prior numpadpageup page-up",
    "page_down": "pagedown pgdn pgdown next kp_page_down kp_next numpadpagedown page-down",
    "up": "arrowup arrow_up uparrow up_arrow kp_up numpadarrowup",
    "down": "arrowdown arrow_down downarrow down_arrow kp_down numpadarrowdown",
    "left": "arrowleft arrow_left leftarrow left_arrow kp_left numpadarrowleft",
    "right": "arrowright arrow_right rightarrow right_arrow kp_right numpadarrowright",
    "caps_lock": "capslock caps",
    "print_screen": "printscreen print prntscrn prtsc prtscr prtscn sysrq",
    "menu": "apps contextmenu context_menu",
    "`": "backquote grave backtick",
    "-": "minus hyphen dash subtract kp_subtract numpadsubtract",
    "=": "equal equals",
    "[": "bracketleft",
    "]": "bracketright",
    "\\": "backslash",
    ";": "semicolon",
    "'": "quote apostrophe",
    ",": "comma kp_separator numpadcomma separator",
    ".": "period dot decimal kp_decimal numpaddecimal",
    "/": "slash divide kp_divide numpaddivide",
    "+": "plus add kp_add numpadadd",
    "*": "asterisk multiply kp_multiply numpadmultiply",
    "_": "underscore",
}
_SPELT: Mapping[str, str] = {
    **{f"digit{n}": str(n) for n in range(10)},
    **{f"num{n}": str(n) for n in range(10)},
    **{f"numpad{n}": str(n) for n in range(10)},
    **{f"kp_{n}": str(n) for n in range(10)},
    **{f"key{letter}": letter for letter in "abcdefghijklmnopqrstuvwxyz"},
}
ALIASES: Mapping[str, str] = {
    **{alias: key for key, aliases in _NAMED.items() for alias in aliases.split(" ")},
    **_SPELT,
    " ": "space",
}
"""Another name, in small letters → the key."""

MODIFIERS: tuple[Modifier, ...] = get_args(Modifier)

_PLAYWRIGHT: Mapping[str, str] = {
    **{"ctrl": "Control", "shift": "Shift", "alt": "Alt", "super": "Meta"},
    **{"up": "ArrowUp", "down": "ArrowDown", "left": "ArrowLeft", "right": "ArrowRight"},
    **{"page_up": "PageUp", "page_down": "PageDown", "caps_lock": "CapsLock"},
    **{"print_screen": "PrintScreen", "menu": "ContextMenu", "space": "Space"},
    **{key: key.capitalize() for key in ("enter", "tab", "backspace", "delete", "escape", "insert")},
    **{key: key.capitalize() for key in ("home", "end", *(f"f{number}" for number in range(1, 13)))},
}
_NOT_IN_WEBDRIVER = ("caps_lock", "print_screen", "menu")
_WRITTEN: Mapping[Vocabulary, Mapping[str, str]] = {
    "pyautogui": {
        **{"super": "win", "escape": "esc", "page_up": "pageup", "page_down": "pagedown"},
        **{"caps_lock": "capslock", "print_screen": "printscreen", "menu": "apps"},
    },
    "playwright": _PLAYWRIGHT,
    "webdriver": {key: f"<{name}>" for key, name in _PLAYWRIGHT.items() if key not in _NOT_IN_WEBDRIVER},
}


def key_name(word: str) -> str:
    """The key that a word names.

    Raises:
        ValueError: if it names none.
    """
    lowered = word.lower()
    key = ALIASES.get(lowered, lowered)
    if key not in KEY_NAMES or not word.isascii():  # the Kelvin sign's small letter is a k
        raise ValueError(f"{word[:40]!r} is no key")
    return key


def chord(words: Iterable[str]) -> tuple[str, ...]:
    """The keys that words name. A capital on its own is shift and its letter; beside other keys, its letter.

    Raises:
        ValueError: for no key, too many, one that is unknown, and one that is named twice.
    """
    named = list(words)
    if not 0 < len(named) <= MAX_CHORD:
        raise ValueError(f"{len(named)} keys; 1 to {MAX_CHORD} can be pressed at once")
    keys = tuple(key_name(word) for word in named)
    if len(set(keys)) < len(keys):
        raise ValueError("a key is named twice")
    return ("shift", *keys) if len(keys) == 1 and is_capital(named[0]) else keys


def is_capital(word: str) -> bool:
    """True for one of A to Z."""
    return len(word) == 1 and "A" <= word <= "Z"


def split_chord(text: str, separator: str = "+") -> list[str]:
    """The words of a chord. A separator where a word should begin is a word: "ctrl++" has the key "+"."""
    words, start = [], 0
    while start < len(text):
        end = text.find(separator, start + 1)
        end = len(text) if end < 0 else end
        words.append(text[start:end])
        start = end + 1
    return [*words, ""] if text and start == len(text) else words


def named_plus(key: str) -> str:
    """A key as a chord can hold it whose keys are joined by "+"."""
    return "plus" if key == "+" else key


def written_key(key: str, vocabulary: Vocabulary) -> str:
    """What a grammar calls a key.

    Raises:
        ValueError: if it has no name for it.
    """
    names = _WRITTEN[vocabulary]
    if vocabulary == "webdriver" and key not in names and len(key) > 1:
        raise ValueError(f"the key {key} has no name")
    return names.get(key, key)


def written_keys(keys: Sequence[str], vocabulary: Vocabulary) -> list[str]:
    """What a grammar calls keys.

    Raises:
        ValueError: if it has no name for one.
    """
    return [written_key(key, vocabulary) for key in keys]
