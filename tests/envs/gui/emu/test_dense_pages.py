"""The dense web: pages that load in parts, what lies over them, lists without an end, advertisements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from at_work import PLAIN, do, running
from oracle_plays import failures

from vlrl.envs.gui.actions import Click, Scroll, TypeText, Wait
from vlrl.envs.gui.emu.apps.parts.browsing import Tab, with_tab
from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.emu.oracle.intents import Intent, click, key, type_into
from vlrl.envs.gui.emu.oracle.reach import Locator
from vlrl.envs.gui.emu.records import changed_records
from vlrl.envs.gui.emu.sites.dense.loading import FIRST_ROWS, READY, SKELETON, TEXT
from vlrl.envs.gui.emu.sites.dense.market import Listing
from vlrl.envs.gui.emu.sites.dense.power import LOCKED, MOST_TRIES, WRONG, Account
from vlrl.envs.gui.emu.sites.dense.visits import OPTIONAL, Visits
from vlrl.envs.gui.emu.state import with_window
from vlrl.envs.gui.emu.task import TEMPLATES
from vlrl.envs.gui.emu.variation import LEAST, Variation
from vlrl.envs.gui.screen import Form

DENSE = {**PLAIN, "pages": "dense", "theme": "daylight", "font_size": 13, "scale": 100, "windows": "one"}
HOST = "shop.example"
WEB = ("browser/", "forms/", "web/", "safety/forum")
LONG = tuple(Listing(n, f"Thing {n}", "Ely", 100 * n) for n in range(1, 41))


def browsing(form: Form = "desktop", seed: int = 1, **known: Any) -> Desktop:
    store = {name: known.pop(name) for name in ("market", "power") if name in known}
    return running("browser", form, {**DENSE}, web=Visits(seed, **known), **store)


def quiet(desktop: Desktop, host: str, *intents: Intent) -> Desktop:
    """Go to a site with nothing over its pages, and wait for all of its images."""
    now = desktop.snapshot()
    known = replace(visits(desktop), consents=((host, ()),), put_away=(host,))
    desktop.restore(now._replace(world=now.world._replace(store={**now.world.store, "web": known})))
    do(desktop, type_into("address", f"{host}/"), key("enter"), *intents)
    desktop.perform(Wait(5000))
    return desktop


def tab(desktop: Desktop) -> Tab:
    shown: Tab = desktop.world.app("browser").shown
    return shown


def visits(desktop: Desktop) -> Visits:
    found = desktop.world.store["web"]
    assert isinstance(found, Visits)
    return found


def texts(desktop: Desktop) -> str:
    hidden = {"hidden", "covered"}
    return "\n".join(f"{e.name} {e.value}" for e in desktop.elements() if not e.states & hidden)


def is_there(desktop: Desktop, id: str) -> bool:
    return Locator(desktop._scene, desktop.world).find(id) is not None


def where(desktop: Desktop, id: str) -> tuple[int, int]:
    found = Locator(desktop._scene, desktop.world).find(id)
    assert found is not None, id
    (x, y, _, _), (x0, y0, x1, y1) = found[0].box, found[1].box
    return x + (x0 + x1) // 2, y + (y0 + y1) // 2


STAGES = ["before", SKELETON, TEXT, READY]


def test_a_page_answers_then_shows_its_text_then_its_images() -> None:
    all_seen = set()
    for seed in range(6):
        desktop, seen = browsing(seed=seed, consents=((HOST, ()),), put_away=(HOST,)), []
        do(desktop, type_into("address", HOST), key("enter"))
        for _ in range(60):
            now, shown = tab(desktop), texts(desktop)
            seen.append("before" if now.pending else now.stage)
            if seen[-1] == "before":  # the page before is still there
                assert now.address == "start" and "Encyclopaedia" in shown and "Loading" in shown
            else:
                assert now.address == f"{HOST}/" and ("€" in shown) == (now.stage != SKELETON)
                assert ("Advertisement" in shown) == (now.stage == READY)
            desktop.perform(Wait(100))
        assert seen == sorted(seen, key=STAGES.index) and seen[-1] == READY
        all_seen |= set(seen)
    assert all_seen == set(STAGES)


def test_a_click_on_the_page_before_goes_where_that_leads() -> None:
    for seed in range(20):
        desktop = browsing(seed=seed)
        quiet(desktop, "club.example")
        there = where(desktop, "nav.2")
        do(desktop, click("go:club.example/join"))
        if tab(desktop).pending:
            desktop.perform(Click(there))
            desktop.perform(Wait(5000))
            assert tab(desktop).history == ("start", "club.example/", "club.example/about")
            return
    raise AssertionError("every page had answered within the second that an action takes")


def test_what_is_typed_while_a_page_loads_is_typed_nowhere() -> None:
    desktop = browsing(consents=(("club.example", ()),), put_away=("club.example",))
    do(desktop, type_into("address", "club.example/join"), key("enter"))
    now = desktop.snapshot()
    state = now.world.app("browser")
    grey = replace(tab(desktop), pending="club.example/join", since_ms=now.world.time_ms)
    window = now.world.windows[-1]._replace(state=with_tab(state, grey))
    desktop.restore(now._replace(world=with_window(now.world, window)))
    desktop.perform(Click((320, 300)))
    desktop.perform(TypeText("Ada"))
    desktop.perform(Wait(5000))
    assert tab(desktop).stage == READY and tab(desktop).fields == () and "Ada" not in texts(desktop)


@pytest.mark.parametrize("kind", ["bar", "settings", "dialog"])
def test_a_banner_covers_the_page_until_it_is_answered(kind: str) -> None:
    desktop = browsing(banners=((HOST, kind),))
    do(desktop, type_into("address", HOST), key("enter"))
    desktop.perform(Wait(5000))
    before = desktop.snapshot().world
    covered = [e.name for e in desktop.elements() if "covered" in e.states]
    assert covered and is_there(desktop, "cookies")
    if kind == "dialog":  # nothing behind it can be clicked
        desktop.perform(Click(where(desktop, "nav.1")))
        assert tab(desktop).address == f"{HOST}/" and not tab(desktop).pending
    assert is_there(desktop, "cookies.reject") == (kind != "settings")
    do(desktop, click("cookies.choose"), click("cookies.marketing"), click("cookies.save"))
    assert visits(desktop).consent(HOST) == ("statistics",) and not is_there(desktop, "cookies")
    do(desktop, click("cookies.open"), click("cookies.accept"))  # in the page's foot
    assert visits(desktop).consent(HOST) == OPTIONAL
    assert changed_records(before, desktop.world) == []


def test_a_newsletter_comes_after_a_while_once_the_cookies_are_answered() -> None:
    desktop = browsing(asking=(HOST,), banners=((HOST, "bar"),))
    do(desktop, type_into("address", HOST), key("enter"))
    desktop.perform(Wait(60_000))
    assert not is_there(desktop, "news")
    do(desktop, click("cookies.reject"))
    desktop.perform(Wait(1000))
    assert is_there(desktop, "news")
    do(desktop, type_into("news.email", "nobody"), click("news.join"))
    assert "This is no e-mail address." in texts(desktop) and not visits(desktop).subscribed
    before = desktop.world
    do(desktop, click("news.no"), click("go:shop.example/cart"))
    desktop.perform(Wait(60_000))
    assert not is_there(desktop, "news") and changed_records(before, desktop.world) == []
    do(desktop, click("news.open"), type_into("news.email", "ada@a.example"), key("enter"))
    assert visits(desktop).subscribed == ((HOST, "ada@a.example"),)
    assert changed_records(before, desktop.world) == ["data:web/newsletter shop.example"]


@pytest.mark.parametrize("form", ["desktop", "mobile"])
def test_a_list_gets_longer_as_one_scrolls_to_its_end(form: Form) -> None:
    desktop = quiet(browsing(form, market=LONG), "market.example")
    for _ in range(9):
        desktop.perform(Wait(60_000))
    assert tab(desktop).rows <= 2 * FIRST_ROWS  # what is seen of the grey rows is filled, and no more
    assert is_there(desktop, "go:market.example/listing/5")
    assert not is_there(desktop, "go:market.example/listing/20")
    do(desktop, click("go:market.example/listing/38"))
    desktop.perform(Wait(5000))
    assert tab(desktop).address == "market.example/listing/38" and "€38.00" in texts(desktop)
    do(desktop, click("back"))
    assert tab(desktop).stage == READY and tab(desktop).rows <= 2 * FIRST_ROWS  # at once, from the top


def test_an_advertisement_leads_away_and_back() -> None:
    desktop = quiet(browsing(), HOST)
    before = desktop.world
    do(desktop, click("ad.top.0"))
    desktop.perform(Wait(5000))
    assert tab(desktop).address.startswith("ads.example/offer/") and not is_there(desktop, "cookies")
    do(desktop, click("back"))
    assert tab(desktop).address == f"{HOST}/" and changed_records(before, desktop.world) == []
    do(desktop, click("forward"), click("claim"))
    assert changed_records(before, desktop.world) == ["data:ads"]


def test_a_search_finds_what_a_site_has() -> None:
    desktop = quiet(browsing(), HOST, type_into("site.words", "lamp"), key("enter"))
    assert "Garden lamp" in texts(desktop) and "Desk lamp" in texts(desktop)
    assert "Teapot" not in texts(desktop)
    do(desktop, click("go:shop.example/item/desk-lamp"))
    desktop.perform(Wait(5000))
    assert tab(desktop).address == "shop.example/item/desk-lamp"


def test_a_wrong_password_is_said_and_five_of_them_lock_the_account() -> None:
    desktop = browsing(power=Account("ada", "copper12", (("May", 1234),)))
    quiet(desktop, "power.example", click("go:power.example/sign-in"), type_into("user", "ada"))
    do(desktop, type_into("password", "copper"), click("sign_in"))
    assert WRONG in texts(desktop) and "€12.34" not in texts(desktop)
    start = desktop.snapshot()
    do(desktop, type_into("password", "copper12"), click("sign_in"))
    desktop.perform(Wait(5000))
    assert "€12.34" in texts(desktop) and tab(desktop).address == "power.example/account"
    desktop.restore(start)
    for _ in range(MOST_TRIES - 1):
        do(desktop, type_into("password", "guess"), click("sign_in"))
    do(desktop, type_into("password", "copper12"), click("sign_in"))
    assert LOCKED in [e.name.removeprefix("! ") for e in desktop.elements()]
    assert not desktop.world.store["power"].is_in


def test_what_is_seen_is_what_a_fresh_screen_shows() -> None:
    desktop = browsing(asking=(HOST,))
    do(desktop, type_into("address", HOST), key("enter"))
    for action in (*[Wait(700)] * 6, Scroll(0, 300, (300, 300)), *[Wait(700)] * 3):
        shown = desktop.perform(action).pixels
        fresh = EmuEnv(**DENSE).backend
        assert isinstance(fresh, Desktop)
        fresh.restore(desktop.snapshot())
        assert np.array_equal(fresh.perform(Wait(0)).pixels, shown)


def test_pages_are_dense_only_where_that_is_asked_for() -> None:
    assert Variation({}).draw(3)["pages"] == "plain"
    assert {Variation({"pages": ["plain", "dense"]}).draw(n)["pages"] for n in range(9)} == {"plain", "dense"}
    desktop = running("browser")
    assert "Second Hand" not in texts(desktop)
    assert "Second Hand" in texts(browsing())


@pytest.mark.parametrize("form", ["desktop", "mobile"])
def test_tasks_are_done_in_dense_pages(form: Form) -> None:
    large = {"scale": 125, "font_size": 14, "font": "roman", "widgets": "fluent"}
    names = ["browser/tabs", "forms/cart", "forms/reply"]
    assert failures(form, names, 5, pages="dense", **large) == []


@pytest.mark.slow(together=True)
@pytest.mark.parametrize("family", ["classic", "fluent", "aqua", "adwaita"])
def test_every_web_task_in_dense_pages_on_the_least_screen(family: str) -> None:
    looks = {"scale": 125, "font_size": 14, "font": "roman", "language": "de", "widgets": family}
    for form in ("desktop", "mobile"):
        names = [n for n, one in sorted(TEMPLATES.items()) if n.startswith(WEB) and form in one.forms]
        failed = failures(form, names, 11, pages="dense", size=LEAST[form][125], **looks)
        assert not failed, "\n".join(failed)
