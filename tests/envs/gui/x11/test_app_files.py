"""Files of apps, read from outside: a browser's bookmarks."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from vlrl.envs.gui.x11.sandbox.home import read_app_files, read_home
from vlrl.envs.gui.x11.tasks.browser import bookmarks_of

PLACES = ".mozilla/firefox/desktop/places.sqlite"
TABLES = """
create table moz_places (id integer primary key, url text);
create table moz_bookmarks (id integer primary key, type integer, fk integer);
insert into moz_places values (1, 'file:///a.html'), (2, 'file:///visited.html');
insert into moz_bookmarks values (1, 1, 1), (2, 2, null);
"""
ENDLESS = """
create view moz_places as with recursive n(id) as (values(1) union all select id + 1 from n)
  select id, 'file:///a.html' as url from n;
create table moz_bookmarks (id integer primary key, type integer, fk integer);
insert into moz_bookmarks values (1, 1, -1);
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[int]:
    handle = os.open(tmp_path, os.O_RDONLY)
    yield handle
    os.close(handle)


def database(folder: Path, script: str) -> sqlite3.Connection:
    path = folder / PLACES
    path.parent.mkdir(parents=True)
    connection = sqlite3.connect(path)
    connection.execute("pragma journal_mode = wal")
    connection.executescript(script)
    return connection


@pytest.mark.parametrize(("script", "found"), [(TABLES, {"file:///a.html"}), (ENDLESS, set()), ("", set())])
def test_bookmarks_are_read_while_the_database_is_open(
    tmp_path: Path, home: int, script: str, found: set[str]
) -> None:
    connection = database(tmp_path, script)
    assert bookmarks_of(read_app_files(home, [PLACES, f"{PLACES}-wal"])) == found
    connection.close()


def test_what_is_no_database_has_no_bookmarks() -> None:
    assert bookmarks_of({PLACES: b"not a database"}) == bookmarks_of({}) == set()


def test_only_named_files_are_read_and_no_link_is_followed(tmp_path: Path, home: int) -> None:
    (tmp_path / ".app").mkdir()
    (tmp_path / ".app" / "seen").write_text("1")
    (tmp_path / ".app" / "other").write_text("2")
    (tmp_path / ".link").symlink_to(tmp_path / ".app")
    assert read_home(home) == {}
    assert read_app_files(home, [".app/seen", ".link/seen", ".none/seen"]) == {".app/seen": b"1"}
