"""The browser and its sites, used as a person would."""

from __future__ import annotations

import pytest
from at_work import do, running

from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.oracle.intents import Intent, choose, click, key, menu, open_app, type_into
from vlrl.envs.gui.emu.sites import club, fly, shop, wiki
from vlrl.envs.gui.screen import Form

CART = (("teapot", "blue", 2),)


def go(address: str) -> list[Intent]:
    return [type_into("address", address), key("enter")]


def at(desktop: Desktop) -> str:
    address: str = desktop.world.app("browser").shown.address
    return address


def texts(desktop: Desktop) -> str:
    return "\n".join(element.name for element in desktop.elements())


def test_history_goes_back_and_forward_and_forgets_what_lay_ahead() -> None:
    desktop = running("browser")
    do(desktop, *go("http://www.wiki.example"), click("go:wiki.example/ostavia"), click("back"))
    assert at(desktop) == "wiki.example/"
    do(desktop, click("forward"))
    assert at(desktop) == "wiki.example/ostavia"
    do(desktop, click("back"), *go("shop.example/"), click("back"))
    assert at(desktop) == "wiki.example/" and desktop.world.app("browser").address == "wiki.example/"


@pytest.mark.parametrize("address", ["nowhere.example", "shop.example/item/moon", "shop.example/checkout"])
def test_a_page_that_is_not_there_says_so(address: str) -> None:
    desktop = running("browser")
    do(desktop, *go(address))
    assert "There is no such page." in texts(desktop)


def test_every_tab_has_a_page_and_a_form_of_its_own() -> None:
    desktop = running("browser")
    do(desktop, *go("club.example/join"), type_into("name", "Ada"))
    do(desktop, click("new_tab"), *go("club.example/join"), type_into("name", "Ben"), choose("tab", 1))
    values = [element.value for element in desktop.elements() if element.name == "Name"]
    assert "Ada" in values and "Ben" not in values
    do(desktop, key("ctrl+w"))
    assert [tab.number for tab in desktop.world.app("browser").tabs] == [2]


def test_bookmarks_outlive_the_window() -> None:
    desktop = running("browser")
    do(desktop, *go("wiki.example/ister"), click("bookmark"), key("ctrl+q"), open_app("browser"))
    assert desktop.world.store["browser"] == ("wiki.example/ister",)
    do(desktop, menu("bookmarks", "go:wiki.example/ister"))
    assert at(desktop) == "wiki.example/ister"
    do(desktop, click("bookmark"))
    assert desktop.world.store["browser"] == ()


def test_searching_leads_to_the_article_of_that_title() -> None:
    desktop = running("browser")
    do(desktop, *go("wiki.example/"), type_into("search", "port lume"), key("enter"))
    assert at(desktop) == "wiki.example/port-lume" and "1412" in texts(desktop)
    assert wiki.LIBRARY[1].path == "/port-lume"


@pytest.mark.parametrize("form", ["desktop", "mobile"])
def test_a_cart_adds_up_what_is_put_into_it(form: Form) -> None:
    desktop = running("browser", form)
    add = [*go("shop.example/item/teapot"), choose("colour", "blue"), click("quantity.more"), click("add")]
    do(desktop, *add, *add)
    assert desktop.world.store["shop"].cart == (("teapot", "blue", 4),)
    assert "Total: €31.80" in texts(desktop)
    do(desktop, click("remove.teapot.blue"))
    assert desktop.world.store["shop"].cart == ()


def test_an_order_needs_every_field() -> None:
    desktop = running("browser", shop=shop.Shop(shop.STOCK, CART))
    do(desktop, *go("shop.example/checkout"), type_into("name", "Ada"), type_into("street", "Mill Lane 1"))
    do(desktop, click("order"))
    assert "! Please fill in: City" in texts(desktop)
    do(desktop, type_into("city", "Ely"), choose("delivery", "express"), choose("payment", "card"))
    do(desktop, click("order"))
    assert not desktop.world.store["shop"].orders
    do(desktop, click("terms"), click("order"))
    wanted = shop.Order(CART, "Ada", "Mill Lane 1", "Ely", "express", "card", False)
    assert desktop.world.store["shop"] == shop.Shop(shop.STOCK, (), (wanted,))
    assert at(desktop) == "shop.example/thanks"


GOOD = {
    "name": "Ada",
    "email": "ada@a.example",
    "password": "compass12",
    "again": "compass12",
    "year": "1980",
    "country": "Japan",
    "plan": "plus",
    "terms": True,
}


def test_a_good_form_has_nothing_wrong() -> None:
    assert club.wrong(GOOD) == ""


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "  "),
        ("email", "ada@home"),
        ("email", "@a.example"),
        ("password", "short1"),
        ("password", "longenough"),
        ("again", "compass13"),
        ("year", "80"),
        ("year", "１９８0x"),
        ("country", ""),
        ("plan", ""),
        ("terms", False),
    ],
)
def test_each_field_is_checked(field: str, value: object) -> None:
    assert club.wrong({**GOOD, field: value})


def test_flights_are_sorted_and_sifted() -> None:
    flights = (
        fly.Flight("AB 1", "Oslo", "Riga", 1, 600, 90, 1, 5000),
        fly.Flight("AB 2", "Oslo", "Riga", 1, 500, 80, 0, 9000),
        fly.Flight("AB 3", "Oslo", "Riga", 2, 400, 70, 0, 1000),
    )
    desktop = running("browser", fly=fly.Airline(flights))
    do(desktop, *go("fly.example/"), choose("from", "Oslo"), choose("to", "Riga"), click("search"))
    assert at(desktop) == "fly.example/from/Oslo/Riga/1"
    assert texts(desktop).index("AB 2") < texts(desktop).index("AB 1") and "AB 3" not in texts(desktop)
    do(desktop, choose("order", "price"))
    assert texts(desktop).index("AB 1") < texts(desktop).index("AB 2")
    do(desktop, click("direct"))
    assert "AB 1" not in texts(desktop)


def test_a_thread_is_begun_and_liked() -> None:
    desktop = running("browser")
    do(desktop, *go("forum.example/new"), click("begin"))
    assert "! A thread needs a title and a text." in texts(desktop)
    do(desktop, type_into("title", "Ladders"), type_into("text", "Who has one?"), click("begin"))
    assert at(desktop) == "forum.example/thread/2"
    do(desktop, click("like.0"), type_into("reply", "I have."), click("post"))
    posts = desktop.world.store["forum"][-1].posts
    assert [post.text for post in posts] == ["Who has one?", "I have."]
    assert [post.is_liked for post in posts] == [True, False]
