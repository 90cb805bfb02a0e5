"""forum.example: threads that people read, like, answer and begin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from vlrl.envs.gui.emu.app import Reader, System
from vlrl.envs.gui.emu.input.events import Command, Event
from vlrl.envs.gui.emu.sites.site import PROBLEM, Fields, left, link, page, paragraph, problem, site
from vlrl.envs.gui.emu.widgets import (
    Button,
    Choice,
    Divider,
    Entry,
    Label,
    Row,
    Space,
    Widget,
    field_row,
)

HOST = "forum.example"
BOARDS = ("Garden", "Travel", "Computers", "Cooking")
ME = "you"


@dataclass(frozen=True)
class Post:
    """What somebody wrote; `is_liked` by you."""

    author: str
    text: str
    likes: int = 0
    is_liked: bool = False


@dataclass(frozen=True)
class Thread:
    """A question and what was answered."""

    number: int
    board: str
    title: str
    posts: tuple[Post, ...]


FIRST = (Thread(1, "Garden", "Hello", (Post("anna", "Welcome to the forum. Be kind."),)),)


def threads(reader: Reader) -> tuple[Thread, ...]:
    """The newest last."""
    found = reader.data_of("forum")
    return found if isinstance(found, tuple) else FIRST


def build(path: str, fields: Mapping[str, Any], reader: Reader) -> Widget | None:
    """The list, a thread, a form to begin one."""
    match path.split("/")[1:]:
        case [""]:
            return _list(threads(reader), fields)
        case ["new"]:
            boards = tuple((board, board) for board in BOARDS)
            return page(
                "New thread",
                problem(fields),
                field_row("Board", Choice("board", "Board", boards, fields.get("board", BOARDS[0]))),
                field_row("Title", Entry("title", "Title", fields.get("title", ""), grow=1)),
                Entry("text", "Text", fields.get("text", ""), lines=4, grow=1),
                left(Button("begin", "Post thread", kind="primary"), link(f"{HOST}/", "All threads")),
            )
        case ["thread", number]:
            thread = next((one for one in threads(reader) if str(one.number) == number), None)
            return None if thread is None else _thread(thread, fields, reader)
    return None


def _list(known: tuple[Thread, ...], fields: Mapping[str, Any]) -> Widget:
    board = fields.get("board", "")
    boards = (("", "All boards"), *((name, name) for name in BOARDS))
    tools = Row(Choice("board", "Board", boards, board), Space(), link(f"{HOST}/new", "New thread"))
    rows: list[Widget] = []
    for thread in known:
        if board in ("", thread.board):
            title = link(f"{HOST}/thread/{thread.number}", thread.title)
            count = Label(f"{thread.board}, {len(thread.posts)} posts", "small")
            rows += [Row(title, Space(), count), Divider()]
    return page("Round Table", tools, *rows)


def _thread(thread: Thread, fields: Mapping[str, Any], reader: Reader) -> Widget:
    rows: list[Widget] = []
    for index, post in enumerate(thread.posts):
        name = f"Like ({post.likes + post.is_liked})"
        like = Button(f"like.{index}", name, icon="up", kind="flat", pressed=post.is_liked)
        rows += [Row(Label(post.author, "bold"), Space(), like), paragraph(post.text, reader), Divider()]
    return page(
        thread.title,
        *rows,
        problem(fields),
        Entry("reply", "Your reply", fields.get("reply", ""), lines=3, hint="Your reply…"),
        left(Button("post", "Post reply", kind="primary"), link(f"{HOST}/", "All threads")),
    )


def handle(path: str, event: Event, fields: Fields, system: System) -> str:
    """Handle likes, replies and new threads."""
    known = threads(system)
    thread = next((one for one in known if path == f"/thread/{one.number}"), None)
    match event:
        case Command("begin"):
            title, text = (str(fields.get(id, "")).strip() for id in ("title", "text"))
            if not title or not text:
                fields[PROBLEM] = "A thread needs a title and a text."
                return path
            number = 1 + max((one.number for one in known), default=0)
            new = Thread(number, fields.get("board", BOARDS[0]), title, (Post(ME, text),))
            return f"/thread/{number}" if system.keep_for("forum", (*known, new)) else path
        case Command("post") if thread is not None:
            text = str(fields.get("reply", "")).strip()
            fields[PROBLEM] = "" if text else "There is nothing to post."
            if text:
                fields["reply"] = ""
                _put(system, known, replace(thread, posts=(*thread.posts, Post(ME, text))))
        case Command(id) if thread is not None and id.startswith("like."):
            liked = int(id.partition(".")[2])
            posts = tuple(
                replace(post, is_liked=not post.is_liked) if index == liked else post
                for index, post in enumerate(thread.posts)
            )
            _put(system, known, replace(thread, posts=posts))
    return path


def _put(system: System, known: tuple[Thread, ...], thread: Thread) -> None:
    system.keep_for("forum", tuple(thread if one.number == thread.number else one for one in known))


FORUM = site(HOST, "Round Table", "reply", build, handle)
