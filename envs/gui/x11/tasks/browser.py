"""Work in the browser (Firefox) on pages of the home folder."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Mapping
from html import escape
from pathlib import Path

import numpy as np

from vlrl.envs.gui.actions import Action, Answer, OpenApp, TypeText
from vlrl.envs.gui.x11.sandbox.home import Tree
from vlrl.envs.gui.x11.task import DesktopTask, Setup
from vlrl.envs.gui.x11.tasks.words import NOUNS, draw, has, holds, keys, new_text

_BROWSER = ("firefox-esr",)
_PLACES = ".mozilla/firefox/desktop/places.sqlite"
_BOOKMARKS = "select p.url from moz_bookmarks b join moz_places p on p.id = b.fk where b.type = 1"
_MOST_STEPS = 100_000
_STYLE = "body{font:16px sans-serif;margin:2em;max-width:40em}td,th{padding:4px 12px;border:1px solid #999}"
_SUBMIT = """
document.querySelector("form").addEventListener("submit", event => {
  event.preventDefault();
  const lines = [...new FormData(event.target)].map(([key, value]) => key + ": " + value + "\\n");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(lines, {type: "application/octet-stream"}));
  link.download = event.target.dataset.file;
  link.click();
});
"""


def _page(title: str, body: str) -> bytes:
    head = f"<meta charset=utf-8><title>{escape(title)}</title><style>{_STYLE}</style>"
    return f"<!doctype html>{head}<h1>{escape(title)}</h1>{body}".encode()


def _browse(path: str) -> list[Action]:
    return [OpenApp("firefox-esr"), *keys("ctrl+l"), TypeText(f"file:///home/user/{path}\n")]


def _shop(rng: np.random.Generator, level: int) -> tuple[dict[str, bytes], dict[str, dict[str, int]]]:
    """A site of a page for each department with its prices, and the prices."""
    departments = draw(rng, ("Tools", "Kitchen", "Garden", "Music", "Travel", "Office"), 1 + level)
    goods = draw(rng, NOUNS, 5 * len(departments))
    prices = {
        department: {good: int(rng.integers(15, 900)) for good in goods[5 * n : 5 * n + 5]}
        for n, department in enumerate(departments)
    }
    links = "".join(f'<li><a href="{name.lower()}.html">{name}</a>' for name in departments)
    files = {"shop/index.html": _page("Shop", f"<ul>{links}</ul>")}
    for name, list_of_prices in prices.items():
        rows = "".join(f"<tr><td>{good}<td>{price}" for good, price in list_of_prices.items())
        table = f"<table><tr><th>Article<th>Price{rows}</table>"
        files[f"shop/{name.lower()}.html"] = _page(name, f'{table}<p><a href="index.html">Back</a>')
    return files, prices


def _price(rng: np.random.Generator, level: int) -> Setup:
    files, prices = _shop(rng, level)
    department = draw(rng, list(prices), 1)[0]
    good = draw(rng, list(prices[department]), 1)[0]
    return Setup(
        goal=f"What does the {good} cost in the shop whose page is shop/index.html in the home folder? "
        "Answer with the number.",
        oracle=[*_browse(f"shop/{department.lower()}.html"), Answer(str(prices[department][good]))],
        files=files,
        answer=str(prices[department][good]),
    )


def _cheapest(rng: np.random.Generator, level: int) -> Setup:
    files, prices = _shop(rng, level)
    department = draw(rng, list(prices), 1)[0]
    best = min(prices[department], key=lambda good: prices[department][good])
    result = f"cheapest-{rng.integers(10, 100)}.txt"
    return Setup(
        goal=f"Find the cheapest article of the department {department} in the shop with the page "
        f"shop/index.html in the home folder. Save its price, digits only, as {result} there.",
        oracle=[
            *_browse(f"shop/{department.lower()}.html"),
            *new_text(result, str(prices[department][best])),
        ],
        files=files,
        milestones={
            "the file is there": has(result),
            "it has the price": holds(result, str(prices[department][best])),
        },
        changed=[result],
    )


def _form(rng: np.random.Generator, level: int) -> Setup:
    name, article = draw(rng, NOUNS, 2)
    size = draw(rng, ("small", "medium", "large"), 1)[0]
    count, result = str(rng.integers(2, 90)), f"order-{rng.integers(10, 100)}.txt"
    fields = {"Name": name, "Article": article, "Number": count}
    asked = dict(list(fields.items())[: 1 + level]) | ({"Size": size} if level > 1 else {})
    inputs = "".join(f"<p><label>{key} <input name={key}></label>" for key in asked if key != "Size")
    options = "".join(f"<option>{one}" for one in ("-", "small", "medium", "large"))
    chooser = f"<p><label>Size <select name=Size>{options}</select></label>" if level > 1 else ""
    box = "<p><label><input type=checkbox name=Express value=yes> Express</label>" if level > 2 else ""
    form = f"<form data-file={result}>{inputs}{chooser}{box}<p><button>Order</button></form>"
    wanted = asked | ({"Express": "yes"} if level > 2 else {})
    said = ", ".join(f"{key} {value}" for key, value in wanted.items())
    work = [step for value in asked.values() for step in (*keys("tab"), TypeText(value))]
    return Setup(
        goal=f"Fill in the form of the page order.html in the home folder ({said}) and press Order: the "
        f"browser then saves {result}.",
        oracle=[
            *(*_browse("order.html"), *work, *(keys("tab", "space") if level > 2 else [])),
            *keys("tab", "enter"),
        ],
        files={"order.html": _page("Order", f"{form}<script>{_SUBMIT}</script>")},
        milestones={"the order is there": has(result), "it is right": holds(result, _said(wanted))},
        changed=[result],
    )


def _said(fields: Mapping[str, str]) -> str:
    return "".join(f"{key}: {value}\n" for key, value in fields.items())


def _bookmark(rng: np.random.Generator, level: int) -> Setup:
    files, prices = _shop(rng, level)
    department = draw(rng, list(prices), 1)[0]
    path = f"shop/{department.lower()}.html"
    return Setup(
        goal=f"Bookmark the page of the department {department} of the shop with the page "
        "shop/index.html in the home folder.",
        oracle=[*_browse(path), *keys("ctrl+d", "enter")],
        files=files,
        milestones={"it is a bookmark": lambda tree: f"file:///home/user/{path}" in bookmarks_of(tree)},
        app_files=(_PLACES, f"{_PLACES}-wal"),
    )


def bookmarks_of(tree: Tree) -> set[str]:
    """Addresses of the bookmarks; none where the database, which the agent may have written, is not one."""
    with tempfile.TemporaryDirectory(prefix="vlrl-x11-") as folder:
        database = Path(folder, "places.sqlite")
        for ending in ("", "-wal"):
            Path(f"{database}{ending}").write_bytes(tree.get(f"{_PLACES}{ending}", b""))
        connection = sqlite3.connect(database)
        try:
            connection.execute("pragma trusted_schema = off")
            connection.set_progress_handler(lambda: True, _MOST_STEPS)  # it ends a query that takes more
            return {str(url) for (url,) in connection.execute(_BOOKMARKS).fetchmany(1000)}
        except sqlite3.Error:
            return set()
        finally:
            connection.close()


TASKS = [
    DesktopTask("web_price", _BROWSER, _price),
    DesktopTask("web_cheapest", (*_BROWSER, "mousepad"), _cheapest),
    DesktopTask("web_form", _BROWSER, _form),
    DesktopTask("web_bookmark", _BROWSER, _bookmark),
]
