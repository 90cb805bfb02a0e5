"""Every name that a grammar has for a key is a key, and every key is written as it is read."""

from __future__ import annotations

import pytest

from vlrl.envs.gui.actions import KEY_NAMES
from vlrl.envs.gui.codecs.grammar.keys import ALIASES, MAX_CHORD, chord, key_name, split_chord, written_keys

# As their sources list them; of OSWorld's, what no keyboard of ours has is below.
PLAYWRIGHT = """Backquote Minus Equal Backslash Backspace Tab Delete Escape ArrowDown End Enter Home Insert
PageDown PageUp ArrowRight ArrowUp ArrowLeft Shift Control Alt Meta ControlOrMeta"""
PYAUTOGUI = r"""! " # $ % & ' ( ) * + , - . / 0 9 : ; < = > ? @ [ \ ] ^ _ ` a z { | } ~
add alt altleft altright apps backspace capslock ctrl ctrlleft ctrlright decimal del delete
divide down end enter esc escape f1 f12 home
insert left multiply num0 num9 pagedown pageup pgdn pgup print printscreen prntscrn prtsc prtscr return right
separator shift shiftleft shiftright subtract tab up win winleft winright command option optionleft"""
XDOTOOL = "Return Escape BackSpace Prior Next Page_Up Page_Down Super_L Control_L Alt_R KP_Enter space"
NONE = "volumeup browserback playpause f13 hyper fn numlock"


def test_every_alias_is_of_a_key() -> None:
    assert set(ALIASES.values()) <= KEY_NAMES
    assert not set(ALIASES) & KEY_NAMES
    assert all(alias == alias.lower() for alias in ALIASES)


@pytest.mark.parametrize(
    "names", [PLAYWRIGHT, PYAUTOGUI, XDOTOOL], ids=["playwright", "pyautogui", "xdotool"]
)
def test_the_names_of_a_source(names: str) -> None:
    for name in [*names.split(), *(f"F{n}" for n in range(1, 13)), *(f"Digit{n}" for n in range(10)), "KeyQ"]:
        assert key_name(name) in KEY_NAMES


def test_white_characters_are_keys() -> None:
    assert [key_name(character) for character in "\t\n\r "] == ["tab", "enter", "enter", "space"]


def test_what_is_no_key() -> None:
    kelvin = "\u212a"  # in small letters it is k
    for name in [*NONE.split(), "", "ctrl+c", "\0", "É", "ı", kelvin]:
        with pytest.raises(ValueError, match="is no key"):
            key_name(name)


@pytest.mark.parametrize("vocabulary", ["pyautogui", "playwright", "webdriver"])
def test_every_key_is_written_as_it_is_read(vocabulary: str) -> None:
    unnamed = set()
    for key in sorted(KEY_NAMES):
        try:
            (word,) = written_keys([key], vocabulary)  # type: ignore[arg-type]
        except ValueError:
            unnamed.add(key)
            continue
        assert key_name(word.strip("<>") or word) == key
    assert unnamed == ({"caps_lock", "menu", "print_screen"} if vocabulary == "webdriver" else set())


def test_chords() -> None:
    assert chord(["Control", "Shift", "T"]) == ("ctrl", "shift", "t")
    assert chord(["A"]) == ("shift", "a")  # what pyautogui.press("A") and MiniWoB's "A" do
    assert [split_chord(text) for text in ("ctrl+s", "ctrl++", "+", "a", "ctrl+", "")] == [
        ["ctrl", "s"],
        ["ctrl", "+"],
        ["+"],
        ["a"],
        ["ctrl", ""],
        [],
    ]
    for wrong in ([], ["a", "A"], ["ctrl", "control"], list("abcdefg")[: MAX_CHORD + 1], ["ctrl", ""]):
        with pytest.raises(ValueError):
            chord(wrong)
