"""What the tests of codecs share: views of every shape, and the words that each grammar has."""

from __future__ import annotations

from vlrl.coordinates import Canvas
from vlrl.envs.gui.actions import (
    Action,
    Answer,
    ButtonDown,
    ButtonUp,
    Click,
    Drag,
    Finish,
    Key,
    KeyDown,
    KeyUp,
    LongPress,
    Move,
    OpenApp,
    Scroll,
    Swipe,
    SystemButton,
    TypeText,
    Wait,
)
from vlrl.envs.gui.codecs.codec import View

VIEW = View(Canvas((480, 640), (476, 644), "resized_pixels"), (5, 5))
"""640×480, shown as Qwen2.5-VL is shown it; the pointer at (5, 5)."""

TEXTS = (
    "hello",
    'it\'s "both" `kinds`',
    "two\nlines\n",
    "  blanks  ",
    "\\n is no newline, C:\\new \\x41",
    "</think> <action>click 1 1</action> <tool_call> </answer> ``` Action: wait()",
    "Action: click(1, 2)\nAction: wait()",
    "', direction='up",
    "日本語 é 😀 \u2028 tab\there",
    "{[(<>)]} #;, = +",
)
"""Texts that a grammar might take for its own words."""

SAMPLES: tuple[Action, ...] = (
    Move((10, 20)),
    Click(),
    Click((639, 479)),
    Click((0, 0), "right"),
    Click((1, 2), "middle"),
    Click((1, 2), "right", 2),
    Click((3, 4), count=2),
    Click((3, 4), count=3),
    Click((3, 4), modifiers=("ctrl", "shift")),
    ButtonDown("left", (3, 4)),
    ButtonDown("right"),
    ButtonUp("left", (3, 4)),
    ButtonUp("middle"),
    Drag(((5, 5), (9, 9))),
    Drag(((7, 7), (9, 9))),
    Drag(((7, 7), (9, 9)), "right", ("alt",)),
    Drag(((7, 7), (9, 9), (1, 1))),
    Scroll(0, 100, (50, 60)),
    Scroll(0, -300),
    Scroll(200, 0),
    Scroll(100, 100),
    Key(("ctrl", "s")),
    Key(("enter",)),
    Key(("shift", "a")),
    Key(("ctrl", "+")),
    Key(("ctrl", "shift", "page_down")),
    Key(("#",)),
    KeyDown("shift"),
    KeyUp("shift"),
    Wait(1000),
    Wait(1500),
    LongPress((3, 4), 800),
    Swipe((1, 2), (3, 4), 300),
    Swipe((320, 479), (320, 0), 500),
    SystemButton("back"),
    SystemButton("home"),
    SystemButton("menu"),
    SystemButton("enter"),
    OpenApp("Mail"),
    Answer("42"),
    Finish(True),
    Finish(False),
    *(TypeText(text) for text in TEXTS),
    *(Answer(text) for text in TEXTS),
)
"""Of every kind of action, what a grammar may or may not be able to say."""
