"""Pages: what actions do, and that time and chance are the driver's."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, get_args

import numpy as np
import pytest

from vlrl.envs.gui.actions import (
    KEY_NAMES,
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
from vlrl.envs.gui.web.folder import WebFolder
from vlrl.envs.gui.web.keys import KEYS

Open = Callable[..., WebFolder]
LOG = """<body style="margin:0;height:2000px"><script>
  const log = [];
  for (const name of %s)
    addEventListener(name, (event) => log.push([event.type, event.button ?? 0, event.detail ?? 0,
      Math.floor(event.clientX ?? 0), Math.floor(event.clientY ?? 0), event.key ?? "",
      event.shiftKey + 2 * event.ctrlKey]));
</script>"""


def log_of(web: WebFolder) -> list[Any]:
    found: list[Any] = web.page.evaluate("log.splice(0)")
    return found


def test_every_key_is_known() -> None:
    assert set(KEYS) >= KEY_NAMES
    assert {KEYS["enter"].key, KEYS["page_up"].key, KEYS["!"].code} == {"Enter", "PageUp", "Digit1"}


def test_mouse(open_page: Open) -> None:
    web = open_page(LOG % '["mousedown", "mouseup", "click", "dblclick", "contextmenu", "wheel"]')
    web.perform(Click((30, 40)))
    assert [(e[0], e[3], e[4]) for e in log_of(web)] == [
        (n, 30, 40) for n in ("mousedown", "mouseup", "click")
    ]
    web.perform(Click((30, 40), count=2))
    assert [e[2] for e in log_of(web) if e[0] in ("click", "dblclick")] == [1, 2, 2]
    web.perform(Click(button="right"))
    assert ("contextmenu", 2) in [(e[0], e[1]) for e in log_of(web)]
    web.perform(Click((5, 5), modifiers=("ctrl", "shift")))
    assert log_of(web)[-1][6] == 3
    web.perform(Scroll(0, 120, (100, 100)))
    assert web.page.evaluate("scrollY") == 120
    web.perform(ButtonDown(point=(10, 10)))
    web.perform(Move((50, 60)))
    assert log_of(web)[-1][0] == "mousedown"
    assert web.perform(ButtonUp()).pointer == (50, 60)
    assert log_of(web)[0][0] == "mouseup"


def test_typing_and_chords(open_page: Open) -> None:
    web = open_page("<textarea id=t autofocus></textarea>")
    web.perform(Click((20, 20)))
    web.perform(TypeText("Hello, Wörld 你好 ♥\nx\ty"))
    assert web.page.evaluate("t.value") == "Hello, Wörld 你好 ♥\nx"  # tab went on to the next field
    web.perform(Click((20, 20)))
    web.perform(Key(("ctrl", "a")))
    web.perform(Key(("shift", "a")))
    assert web.page.evaluate("t.value") == "A"
    web.perform(KeyDown("shift"))
    web.perform(TypeText("b"))
    web.perform(KeyUp("shift"))
    web.perform(Key(("home",)))
    web.perform(Key(("shift", "right")))
    web.perform(Key(("delete",)))
    assert web.page.evaluate("t.value") in ("b", "B")
    web.perform(Key(("ctrl", "z")))
    assert len(web.page.evaluate("t.value")) == 2


def test_a_clipboard_is_the_pages_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    def copied(word: str) -> str:
        folder = tmp_path_factory.mktemp("clip")
        (folder / "page.html").write_text("<!DOCTYPE html><input id=a autofocus><input id=b>")
        (folder / "page.task.js").write_text("({goal: '', verdict: () => ({milestones: {x: false}})})")
        web = WebFolder(str(folder), size=(320, 240))
        found = []
        web.reset({}, 0)
        for number in range(4):
            web.perform(Click((20, 20)))
            web.perform(Key(("ctrl", "a")))
            web.perform(TypeText(f"{word}{number}"))
            web.perform(Key(("ctrl", "a")))
            web.perform(Key(("ctrl", "c")))
            web.perform(Key(("tab",)))
            web.perform(Key(("ctrl", "a")))
            web.perform(Key(("ctrl", "v")))
            found.append(web.page.evaluate("b.value"))
        web.close()
        return " ".join(found)

    words = ["one", "two", "three"]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(copied, words)) == [" ".join(f"{w}{n}" for n in range(4)) for w in words]


def test_drags(open_page: Open) -> None:
    web = open_page(
        """<body style="margin:0"><style>#a { width: 60px; height: 40px; background: red }
        #z { position: absolute; left: 200px; top: 100px; width: 80px; height: 80px; background: blue }
        </style>
        <div id=a draggable=true></div><div id=z></div>
        <script>a.ondragstart = (e) => e.dataTransfer.setData("text", "me");
        z.ondragover = (e) => e.preventDefault();
        z.ondrop = (e) => { e.preventDefault(); got = e.dataTransfer.getData("text"); }; let got;
        const path = []; onmousemove = (e) => path.push([e.clientX, e.clientY]);</script>"""
    )
    web.perform(Drag(((20, 20), (240, 140))))
    assert web.page.evaluate("got") == "me"
    web.page.evaluate("path.length = 0")
    web.perform(Drag(((5, 200), (65, 200), (65, 230))))
    moved = web.page.evaluate("path.map((p) => p.map(Math.floor))")
    assert moved[0] == [5, 200]
    assert [65, 200] in moved
    assert moved[-1] == [65, 230]
    assert len(moved) >= 12


def test_fingers(open_page: Open) -> None:
    html = LOG % '["touchstart", "touchmove", "touchend", "click", "contextmenu"]'
    web = open_page(html, form="mobile")
    web.perform(Click((50, 60)))
    names = [event[0] for event in log_of(web)]
    assert names[:2] == ["touchstart", "touchend"]
    assert "click" in names
    heights = []
    for _ in range(2):
        web.reset({}, 0)
        web.perform(Swipe((100, 200), (100, 80)))
        heights.append(web.page.evaluate("scrollY"))
    assert heights[0] == heights[1] > 60
    web.perform(LongPress((50, 60)))
    assert log_of(web)[-1][0] in ("touchend", "contextmenu", "click")


def test_time_is_the_drivers(open_page: Open) -> None:
    html = """<body><p id=p></p><script>
      const opened = Date.now(), chance = [Math.random(), crypto.getRandomValues(new Uint8Array(2))[0]];
      let late = 0, ticks = 0;
      setTimeout(() => late = Date.now() - opened, 5000);
      setInterval(() => ticks++, 1000);
      p.textContent = new Date().toISOString() + " " + Date() + (new Date() instanceof Date);
    </script>"""
    web = open_page(html)
    begin = web.page.evaluate("performance.now()")
    assert web.page.evaluate("performance.now()") == begin
    web.perform(Move((5, 5)))
    assert web.page.evaluate("[performance.now(), late]") == [begin + 48, 0]
    web.perform(Wait(6000))
    assert web.page.evaluate("late") == 5000
    assert web.page.evaluate("ticks") in (6, 7)
    shown, chance = web.page.evaluate("p.textContent"), web.page.evaluate("chance")
    assert shown.startswith("2026-01-01T12:00:00.000Z")
    web.reset({}, 0)
    assert web.page.evaluate("p.textContent") == shown
    assert web.page.evaluate("chance") == chance
    web.reset({}, 1)
    assert web.page.evaluate("chance") != chance


def test_what_moves_is_waited_for(open_page: Open) -> None:
    web = open_page(
        """<style>#d { transition: width 3s; width: 10px; height: 9px; background: red }
        #d.wide { width: 200px } @keyframes spin { from { left: 0 } to { left: 50px } }
        .spin { position: relative; animation: spin 1s infinite }</style><button id=b onclick="
        d.classList.add('wide'); setTimeout(() => b.textContent = 'later', 400)">go</button>
        <button onclick="(function f() { requestAnimationFrame(f) })()">loop</button><div id=d></div>
        <div class=spin>x</div>"""
    )
    screen = web.perform(Click((20, 15)))
    assert screen.settled
    assert web.page.evaluate("[b.textContent, getComputedStyle(d).width]") == ["later", "200px"]
    again = web.perform(Wait(100))
    assert np.array_equal(screen.pixels, again.pixels)
    loops = next(e.box for e in web.elements() if e.name == "loop")
    assert not web.perform(Click((loops[0] + 5, loops[1] + 5))).settled


def test_a_list_drops_down_in_the_image(open_page: Open) -> None:
    options = "".join(f"<option>{name}</option>" for name in ("red", "green", "blue"))
    web = open_page(f"<select id=s onchange='document.body.dataset.done = s.value'>{options}</select>")
    closed = web.show().pixels
    assert not np.array_equal(web.perform(Click((20, 18))).pixels, closed)
    x0, y0, x1, y1 = next(e.box for e in web.elements() if (e.role, e.name) == ("option", "blue"))
    web.perform(Click(((x0 + x1) // 2, (y0 + y1) // 2)))
    assert web.page.evaluate("[s.value, document.body.dataset.done]") == ["blue", "blue"]
    for key in ("enter", "up", "enter"):
        web.perform(Key((key,)))
    assert web.page.evaluate("document.body.dataset.done") == "green"


@pytest.mark.parametrize("kind", ["date", "time", "month", "week", "datetime-local", "color", "file", "list"])
def test_a_field_s_own_window_beside_the_page_stays_shut(open_page: Open, kind: str) -> None:
    """It is in no image, and while it is open the browser draws none."""
    field = f"<input id=f type={kind}>" if kind != "list" else "<input id=f list=l>"
    options = "<datalist id=l><option>red<option>green</datalist>"
    web = open_page(f"{field}{options}<button onclick='f.showPicker()'>Pick</button>", limit_s=5.0)
    boxes = {e.role: e.box for e in web.elements() if e.role == "button"} | {
        "field": [round(v) for v in web.page.evaluate("Object.values(f.getBoundingClientRect().toJSON())")]
    }
    x, y, width, height = boxes["field"][:4]
    for place in range(x + 4, x + width, 8):  # one of them is what opens it
        web.perform(Click((place, y + height // 2)))
    for keys in (("space",), ("alt", "down"), ("f4",), ("enter",), ("down",)):
        web.perform(Key(keys))
    web.perform(TypeText("r"))
    x0, y0, x1, y1 = boxes["button"]
    web.perform(Click(((x0 + x1) // 2, (y0 + y1) // 2)))
    assert web.perform(Click((300, 200))).pixels.size


def test_elements(open_page: Open) -> None:
    web = open_page(
        """<main><h1>Shop</h1><label for=n>Name</label> <input id=n value=Ann><input type=checkbox checked
        aria-label=Gift><button disabled>Buy</button><a href=x.html>More</a><p hidden>secret</p>
        <style>div { position: absolute; left: 0; top: 200px; width: 320px; height: 40px }</style>
        <div><button>Under</button></div><div style="background:red"></div></main>""",
        scale=2.0,
    )
    found = {(e.role, e.name): e for e in web.elements()}
    assert found["textbox", "Name"].value == "Ann"
    assert found["checkbox", "Gift"].states == {"checked"}
    assert found["button", "Buy"].states == {"disabled"}
    assert found["button", "Under"].states == {"covered"}
    assert ("link", "More") in found
    assert not any("secret" in name for _, name in found)
    x0, _, x1, y1 = found["heading", "Shop"].box
    assert x1 <= web.size[0] == 640
    assert x0 < x1 and y1 < web.size[1] == 480


def test_pages_lead_to_pages(open_page: Open, tmp_path: Any) -> None:
    web = open_page("<a id=l href=second.html>next</a>")
    (tmp_path / "second.html").write_text("<!DOCTYPE html><script>alert(1); confirm('?')</script><p id=p>two")
    box = next(e.box for e in web.elements() if e.role == "link")
    web.perform(Click((box[0] + 5, box[1] + 5)))
    assert web.page.evaluate("p.textContent") == "two"
    web.perform(SystemButton("back"))
    assert web.page.evaluate("document.body.textContent.trim()") == "next"


def test_every_action_is_taken(open_page: Open) -> None:
    web = open_page("<textarea id=t style='width:300px;height:200px'>" + "words " * 300 + "</textarea>")
    some: list[Action] = [
        *(Move((9, 9)), Click((9, 9)), ButtonDown(), ButtonUp(), Drag(((9, 9), (300, 230))), Scroll(0, 50)),
        *(TypeText("x"), Key(("ctrl", "a")), KeyDown("alt"), KeyUp("alt"), Wait(10), LongPress((9, 9))),
        *(Swipe((9, 9), (9, 90)), SystemButton("home"), OpenApp("mail")),
    ]
    assert {type(action) for action in some} | {Answer, Finish} == set(get_args(Action))
    images = []
    for _ in range(2):
        web.reset({}, 0)
        images.append([web.perform(action).pixels for action in some])
    assert all(np.array_equal(first, second) for first, second in zip(*images, strict=True))
