"""What hands do arrives in real apps, and a screen is shown when it has settled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest
from x11_traces import MACHINE

from vlrl.envs.gui.actions import (
    Action,
    ButtonDown,
    ButtonUp,
    Click,
    Drag,
    Key,
    KeyDown,
    KeyUp,
    Move,
    OpenApp,
    Scroll,
    Swipe,
    SystemButton,
    TypeText,
    Wait,
)
from vlrl.envs.gui.x11 import wire
from vlrl.envs.gui.x11.desktop import Desktop, Window
from vlrl.envs.gui.x11.inputs import Inputs
from vlrl.envs.gui.x11.sandbox.home import read_home

MANAGERS_WINDOW = 4194312
"""Where icewm leaves the focus when no window has it."""

STRANGE = "Größe Łódź Привет 你好 → ½ “q” ~`^\\|{}[]<>@#$%&*()_+ 'x' \"y\""


def front(desktop: Desktop) -> Window:
    return desktop.windows()[-1]


def saved(desktop: Desktop, name: str) -> str:
    for action in (Key(("ctrl", "s")), TypeText(name), Key(("enter",))):
        assert desktop.perform(action).settled, action
    return read_home(desktop.home)[name].decode().rstrip("\n")


def test_the_pointer_is_where_it_was_moved_and_is_drawn(desktop: Desktop) -> None:
    here, there = desktop.perform(Move((100, 100))), desktop.perform(Move((300, 200)))
    assert (here.pointer, there.pointer) == ((100, 100), (300, 200))
    assert here.pixels.shape == (600, 800, 3)
    changed = np.argwhere((here.pixels != there.pixels).any(-1))
    assert changed.min(0).tolist() >= [95, 95] and changed.max(0).tolist() <= [230, 330]


def test_text_of_any_script_is_typed_exactly(desktop: Desktop) -> None:
    desktop.perform(OpenApp("Text Editor"))
    many = "".join(chr(code) for code in range(0x4E00, 0x4E00 + 400))  # more than the keyboard has free keys
    assert desktop.perform(TypeText(f"{STRANGE}\n\tindented\n{many}")).settled
    assert saved(desktop, "typed.txt") == f"{STRANGE}\n\tindented\n{many}"


def test_chords_clicks_and_drags_edit_a_text(desktop: Desktop) -> None:
    desktop.perform(OpenApp("mousepad"))
    desktop.perform(TypeText("alpha beta gamma"))
    x, y, *_ = front(desktop).box
    line = y + 37
    desktop.perform(Click((x + 15, line), count=2))  # the first word
    desktop.perform(TypeText("omega"))
    desktop.perform(
        Drag(((x + 100, line), (x + 400, line + 3), (x + 3, line + 60)))
    )  # from within to the end
    desktop.perform(Key(("delete",)))
    text = saved(desktop, "edited.txt")
    assert text.startswith("omega b") and "gamma" not in text


def test_keys_and_buttons_are_held(desktop: Desktop) -> None:
    desktop.perform(OpenApp("mousepad"))
    desktop.perform(TypeText("abc"))
    desktop.perform(KeyDown("shift"))
    desktop.perform(Key(("left",)))
    desktop.perform(Key(("x",)))
    desktop.perform(KeyUp("shift"))
    assert saved(desktop, "held.txt") == "abX"
    before = front(desktop).box
    x, y = before[0] + 200, before[1] - 10  # the title bar
    desktop.perform(ButtonDown(point=(x, y)))
    desktop.perform(Move((x + 60, y + 50)))
    desktop.perform(ButtonUp())
    after = front(desktop).box
    assert (after[0] - before[0], after[1] - before[1]) == (60, 50)


LOSE_FOCUS = r"""
use IO::Socket::UNIX;
my $x = IO::Socket::UNIX->new("/tmp/.X11-unix/X0");
sub get { my $data; read $x, $data, $_[0]; $data }
sub ask { print $x pack($_[0], @_[1 .. $#_]); $x->flush; unpack("x8 V", get(32)) }
print $x pack("a2 v5", "l", 11, 0, 0, 0, 0); $x->flush;
my $setup = get(4 * unpack("x6 v", get(8)));
my ($vendor, $formats) = unpack("x16 v x3 C", $setup);
my $root = unpack("V", substr($setup, 32 + 4 * int(($vendor + 3) / 4) + 8 * $formats));
my $active = ask("CCvvxxa20", 16, 0, 7, 18, "_NET_ACTIVE_WINDOW");
print $x pack("CCvVVVCx3VV", 18, 0, 7, $root, $active, 33, 32, 1, 0);  # ChangeProperty: nobody
print $x pack("CCvVV", 42, 0, 3, $ARGV[0], 0);  # SetInputFocus
my $focus = ask("CCv", 43, 0, 1);  # GetInputFocus
open my $file, ">", "lost.txt"; print $file $focus;
"""


def test_a_window_gets_the_keyboard_that_the_window_manager_kept(desktop: Desktop) -> None:
    """icewm 3.3.1 leaves it so when a window closes as it opens: after one in 30 of `xterm -e true`."""
    desktop.write({"lose.pl": LOSE_FOCUS.encode()})
    desktop.perform(OpenApp("xterm"))
    desktop.perform(TypeText(f"perl lose.pl {MANAGERS_WINDOW}\n"))
    assert read_home(desktop.home)["lost.txt"].decode() == str(MANAGERS_WINDOW)
    desktop.perform(TypeText("touch found\n"))
    assert "found" in read_home(desktop.home)


class BusyApp:
    """A connection to an app that reads only when it is waited for, and then one move for all that came."""

    keycodes = (8, 8)

    def __init__(self) -> None:
        self.place = (0, 0)
        self.moves_read: list[tuple[int, int]] = []

    def fake(self, event: int, detail: int, x: int = 0, y: int = 0) -> None:
        if event == wire.MOTION:
            self.place = (x, y)

    def pointer(self) -> tuple[int, int]:
        return self.place

    def keyboard(self) -> list[tuple[int, ...]]:
        return [()]

    def sync(self) -> None:
        pass

    def settle(self) -> None:
        if self.moves_read[-1:] != [self.place]:
            self.moves_read.append(self.place)


@pytest.mark.parametrize(
    "hold",
    [
        [ButtonDown(point=(10, 10)), Move((70, 60)), ButtonUp()],
        [Drag(((10, 10), (70, 60)))],
        [Swipe((10, 10), (70, 60))],
    ],
    ids=["down and up", "drag", "swipe"],
)
def test_a_drag_begins_before_it_goes_on_however_busy_the_app(hold: Sequence[Action]) -> None:
    app = BusyApp()
    inputs = Inputs(cast(wire.Connection, app), app.settle)
    for action in hold:
        inputs.perform(action)
        app.settle()
    start, begun, end = app.moves_read
    assert (start, end) == ((10, 10), (70, 60)) and start < begun < end


def test_the_wheel_scrolls(desktop: Desktop) -> None:
    desktop.perform(OpenApp("mousepad"))
    desktop.perform(TypeText("\n".join(map(str, range(100)))))
    x0, y0, x1, y1 = front(desktop).box
    middle = ((x0 + x1) // 2, (y0 + y1) // 2)
    end = desktop.perform(Move(middle))
    up = desktop.perform(Scroll(dy=-500))
    down = desktop.perform(Scroll(dy=500, point=middle))
    assert (up.pixels != end.pixels).any() and (down.pixels != up.pixels).any()


def test_apps_are_brought_to_the_front_and_unknown_ones_are_not_opened(desktop: Desktop) -> None:
    for name in ("galculator", "mousepad", "Calculator"):
        desktop.perform(OpenApp(name))
    assert [window.app for window in desktop.windows()] == ["Mousepad", "Galculator"]
    desktop.perform(OpenApp("sh -c 'touch /home/user/x'"))
    desktop.perform(OpenApp("$(reboot)"))
    desktop.perform(SystemButton("home"))
    assert len(desktop.windows()) == 2 and read_home(desktop.home) == {}


def test_the_task_bar_starts_apps(desktop: Desktop) -> None:
    desktop.perform(Click((70, 588)))
    assert front(desktop).app == "Mousepad"


def test_a_screen_is_shown_when_it_has_settled(desktop: Desktop) -> None:
    for app in ("galculator", "pcmanfm", "xterm", "gpicview", "mousepad", "mtpaint"):
        shown = desktop.perform(OpenApp(app))
        later = desktop.perform(Wait(400))
        assert shown.settled and np.array_equal(shown.pixels, later.pixels), app


def test_a_screen_that_does_not_settle_is_shown_as_such() -> None:
    desktop = Desktop(MACHINE)
    try:
        desktop.perform(OpenApp("xterm"))
        assert not desktop.perform(TypeText("while :; do :; done\n")).settled
        assert desktop.perform(Key(("ctrl", "c"))).settled
    finally:
        desktop.close()


def test_the_same_actions_give_the_same_pixels(desktop: Desktop) -> None:
    other = Desktop(desktop.machine)
    try:
        for action in (
            OpenApp("mousepad"),
            TypeText("same"),
            OpenApp("pcmanfm"),
            Click((300, 200)),
            OpenApp("xterm"),
        ):
            assert np.array_equal(desktop.perform(action).pixels, other.perform(action).pixels), action
    finally:
        other.close()
