"""Codecs by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

from vlrl.coordinates import Canvas, CoordinateFrame
from vlrl.envs.gui.actions import Action, Answer
from vlrl.envs.gui.codecs.androidworld import AndroidWorldCodec
from vlrl.envs.gui.codecs.browsergym import BrowserGymCodec
from vlrl.envs.gui.codecs.codec import ActionError, Codec, View
from vlrl.envs.gui.codecs.computer_13 import Computer13Codec
from vlrl.envs.gui.codecs.grammar.frames import FRAME_NAMES
from vlrl.envs.gui.codecs.grammar.next_words import next_words
from vlrl.envs.gui.codecs.grammar.tolerance import TOLERANCES, Tolerance, TolerantCodec
from vlrl.envs.gui.codecs.gui_r1 import GuiR1Codec
from vlrl.envs.gui.codecs.miniwob import MiniWobCodec
from vlrl.envs.gui.codecs.osworld_pyautogui import PyautoguiCodec
from vlrl.envs.gui.codecs.plain import PlainCodec
from vlrl.envs.gui.codecs.qwen_computer import QwenComputerCodec
from vlrl.envs.gui.codecs.qwen_mobile import QwenMobileCodec
from vlrl.envs.gui.codecs.uitars import UiTarsCodec
from vlrl.errors import ConfigError

Maker: TypeAlias = Callable[[str, CoordinateFrame], Codec]


@dataclass(frozen=True, slots=True)
class CodecEntry:
    """A codec: how to make one of a name and a frame, its own frame, and a line about it."""

    make: Maker
    frame: CoordinateFrame
    line: str


CODECS: Mapping[str, CodecEntry] = {
    "plain": CodecEntry(
        PlainCodec, "resized_pixels", "vlrl's own: <action>click 312 240</action>; says every action"
    ),
    "uitars": CodecEntry(
        UiTarsCodec, "per_1000", "UI-TARS 1.0: click(start_box='<|box_start|>(x,y)<|box_end|>')"
    ),
    "uitars_1_5": CodecEntry(UiTarsCodec, "resized_pixels", "UI-TARS 1.5: click(point='<point>x y</point>')"),
    "gui_r1": CodecEntry(GuiR1Codec, "resized_pixels", "GUI-R1: a list of one dictionary in <answer> tags"),
    "osworld_pyautogui": CodecEntry(
        PyautoguiCodec, "original_pixels", "OSWorld: one pyautogui call, read, not run"
    ),
    "computer_13": CodecEntry(
        Computer13Codec, "original_pixels", "OSWorld: JSON with an action_type in capitals"
    ),
    "androidworld": CodecEntry(AndroidWorldCodec, "original_pixels", "AndroidWorld: JSON, phones"),
    "browsergym": CodecEntry(BrowserGymCodec, "original_pixels", "BrowserGym: functions with coordinates"),
    "miniwob": CodecEntry(MiniWobCodec, "original_pixels", "MiniWoB++: JSON with coords"),
    "qwen2_5_computer_use": CodecEntry(
        QwenComputerCodec, "resized_pixels", "Qwen2.5-VL's tool call, desktops"
    ),
    "qwen3_computer_use": CodecEntry(QwenComputerCodec, "per_1000", "Qwen3-VL's tool call, desktops"),
    "qwen2_5_mobile_use": CodecEntry(QwenMobileCodec, "resized_pixels", "Qwen2.5-VL's tool call, phones"),
    "qwen3_mobile_use": CodecEntry(QwenMobileCodec, "per_999", "Qwen3-VL's tool call, phones"),
}


def open_codec(name: str, tolerance: Tolerance = "published") -> TolerantCodec:
    """Make a codec: "NAME", or "NAME@FRAME" for coordinates in another frame than the grammar's own.

    Args:
        name: of the codec.
        tolerance: how much it forgives; see `vlrl.envs.gui.codecs.grammar.tolerance`.

    Raises:
        ConfigError: for an unknown name, frame or tolerance.
    """
    if tolerance not in TOLERANCES:
        raise ConfigError(f"GUI codec {name!r}: tolerance={tolerance!r}; give {', '.join(TOLERANCES)}")
    grammar, _, frame = name.partition("@")
    if grammar not in CODECS:
        close = difflib.get_close_matches(grammar, CODECS, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ConfigError(f"GUI codec {grammar!r} is unknown{hint}\nknown are:\n{codec_list()}")
    if "@" in name and frame not in FRAME_NAMES:
        raise ConfigError(f"GUI codec {name!r}: there is no frame {frame!r}; give {', '.join(FRAME_NAMES)}")
    entry = CODECS[grammar]
    codec = entry.make(name, cast(CoordinateFrame, frame) if frame else entry.frame)
    return TolerantCodec(codec, tolerance)


def can_say(name: str, action: Action) -> bool:
    """Whether a codec has words for an action on a screen of 640×480, or for what comes to the same."""
    try:
        next_words(open_codec(name), action, View(Canvas((480, 640), (480, 640)), (0, 0)))
    except ActionError:
        return False
    return True


def can_answer(name: str) -> bool:
    """Whether a codec has a word for the answer to a question."""
    return can_say(name, Answer("1"))


def codec_list() -> str:
    """Every codec on a line of its own: name, what it is, frame of its coordinates."""
    width = max(map(len, CODECS))
    return "\n".join(f"  {name:{width}}  {entry.line} ({entry.frame})" for name, entry in CODECS.items())
