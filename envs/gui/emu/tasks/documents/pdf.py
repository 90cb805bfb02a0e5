"""Tasks with PDF files: finding what stands somewhere in a booklet, going there, marking pages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from vlrl.envs.gui.emu.apps.documents.paper import Page, Paper, found
from vlrl.envs.gui.emu.apps.documents.pdf import Bookmark, kept
from vlrl.envs.gui.emu.oracle.intents import (
    Intent,
    answer,
    choose,
    click,
    double_click,
    key,
    open_app,
    type_into,
)
from vlrl.envs.gui.emu.records import page_record
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.task import Draw, Setup, template
from vlrl.envs.gui.emu.tasks.files.folders import row
from vlrl.envs.gui.emu.wording import worded

HOME = "/Documents"
DEVICES = (
    "coffee machine",
    "radio",
    "heater",
    "sewing machine",
    "bread maker",
    "lawn mower",
    "printer",
    "scooter",
)


class Fact(NamedTuple):
    """A sentence with a number in it; `asked` is the question, `word` what finds it."""

    said: str
    asked: str
    word: str


CHAPTERS: dict[str, Fact] = {
    "Safety": Fact(
        "Keep at least {} centimetres away from curtains.",
        "How many centimetres away from curtains must it be kept",
        "curtains",
    ),
    "Parts": Fact(
        "The spare belt has the order number {}.", "What is the order number of the spare belt", "belt"
    ),
    "Setting up": Fact(
        "Wait {} minutes before you switch it on for the first time.",
        "How many minutes must one wait before it is switched on for the first time",
        "switch it on",
    ),
    "Daily use": Fact(
        "A green lamp blinks {} times when it is ready.",
        "How many times does the green lamp blink when it is ready",
        "green lamp",
    ),
    "Cleaning": Fact(
        "Rinse the filter every {} days.", "After how many days is the filter to be rinsed", "filter"
    ),
    "Storage": Fact(
        "Store it above {} degrees in winter.",
        "Above how many degrees is it to be stored in winter",
        "winter",
    ),
    "Faults": Fact(
        "Code E{} means that the lid is open.",
        "Which number after the E means that the lid is open",
        "lid is open",
    ),
    "Service": Fact(
        "The workshop answers at extension {}.", "At which extension does the workshop answer", "extension"
    ),
    "Technical data": Fact(
        "It weighs {} hundred grams without its cable.",
        "How many hundred grams does it weigh without its cable",
        "weighs",
    ),
    "Warranty": Fact(
        "Send the card within {} weeks.", "Within how many weeks is the card to be sent", "card within"
    ),
    "Recycling": Fact(
        "Container {} at the depot takes old batteries.",
        "Which container at the depot takes old batteries",
        "batteries",
    ),
    "Accessories": Fact(
        "The travel bag costs {} euros.", "How many euros does the travel bag cost", "travel bag"
    ),
}
SENTENCES = (
    "Read this part before you go on, and keep the booklet where everybody finds it.",
    "If something seems to be missing, ask the shop where you bought it.",
    "Children may help, but only while a grown-up is in the room.",
    "The pictures show the blue model; the grey one has its handle at the other side.",
    "Never use force: every piece comes loose by itself when the catch is pressed.",
    "Most people do this once a month, and always before a journey.",
    "Place it on a firm table, not too close to the edge.",
    "A soft cloth and warm water are all that you need.",
    "Write down the date on the last page, so that you remember it.",
    "What is said here holds for all models of this series.",
    "You may hear a low hum while it works; this is as it should be.",
    "When in doubt, pull the plug and wait until everything is cold.",
)
OFTEN = ("children", "booklet", "cloth", "plug", "journey", "handle")
"""Words of SENTENCES alone, which no other word contains."""
TITLES = ("User manual", "Instructions", "Owner's guide", "Handbook")


class Booklet(NamedTuple):
    """A PDF file sampled for a task.

    Attributes:
        facts: heading → (page from 0 on, question, answer, word that finds it).
    """

    path: str
    device: str
    paper: Paper
    facts: dict[str, tuple[int, str, str, str]]

    @property
    def file(self) -> str:
        """Name of the file."""
        return self.path.rpartition("/")[2]


def booklet(draw: Draw, count: int) -> Booklet:
    """So many chapters of one or two pages, each with a fact on one of them."""
    device = draw.pick(DEVICES)
    pages: list[Page] = []
    facts: dict[str, tuple[int, str, str, str]] = {}
    numbers = draw.picks(range(12, 98), count)
    for heading, number in zip(draw.picks(tuple(CHAPTERS), count), numbers, strict=True):
        fact, begin, length = CHAPTERS[heading], len(pages), draw.number(1, 2)
        texts = [_paragraphs(draw) for _ in range(length)]
        at = draw.number(0, length - 1)
        texts[at].insert(draw.number(0, len(texts[at])), fact.said.format(number))
        pages += [Page(heading if not n else "", tuple(text)) for n, text in enumerate(texts)]
        facts[heading] = (begin + at, fact.asked, str(number), fact.word)
    paper = Paper(f"{draw.pick(TITLES)}: {device}", tuple(pages))
    return Booklet(f"{HOME}/{device.replace(' ', '-')}.pdf", device, paper, facts)


def _paragraphs(draw: Draw) -> list[str]:
    said = draw.picks(SENTENCES, 6)
    return [f"{said[n]} {said[n + 1]}" for n in (0, 2, 4)][: draw.number(2, 3)]


def setup(draw: Draw, book: Booklet, goal: str, steps: Sequence[Intent], **rest: object) -> Setup:
    """Set up with the file open at level 1; later it is to be opened in Files, among others."""
    others = {
        f"{HOME}/{name}.pdf": Paper(name, (Page("Notes", SENTENCES[:2]),)) for name in ("flyer", "tickets")
    }
    is_open = draw.level == 1
    going = [] if is_open else [open_app("files"), double_click(row(book.path))]
    return Setup(
        goal=goal if is_open else worded("In {file} in Documents: {goal}", file=book.file, goal=goal),
        files={book.path: book.paper, **(others if draw.level == 3 else {})},
        windows=[("pdf", book.path)] if is_open else [],
        oracle=[*going, *steps],
        **rest,  # type: ignore[arg-type]
    )


def searched(word: str, times: int = 1) -> list[Intent]:
    """How a word is found."""
    return [click("find"), type_into("query", word), *(times * [key("enter")])]


def to_chapter(draw: Draw, page: int) -> list[Intent]:
    """How a chapter is gone to by the contents, which a phone shows only when asked to."""
    return [*([click("panel")] if draw.looks["form"] == "mobile" else []), choose("contents", page)]


def _begin(book: Booklet, heading: str) -> int:
    return [page.heading for page in book.paper.pages].index(heading)


@template("pdf/look_up", levels=(1, 2, 3))
def look_up(draw: Draw) -> Setup:
    """What a booklet says about something; the longer it is, the higher the level."""
    book = booklet(draw, 2 + 3 * draw.level)
    _, asked, said, word = book.facts[draw.pick(tuple(book.facts))]
    goal = "{question}, by the manual of the {device}? Answer with the number."
    goal = worded(goal, question=worded(asked), device=worded(book.device))
    return setup(draw, book, goal, [*searched(word), answer(said)], answer=said)


@template("pdf/page_of", levels=(1, 2, 3))
def page_of(draw: Draw) -> Setup:
    """Where a chapter begins, on which page something stands, or how often a word occurs."""
    book = booklet(draw, 4 + 2 * draw.level)
    heading = draw.pick(tuple(book.facts)[1:])
    page, _, _, word = book.facts[heading]
    begin = _begin(book, heading)
    if draw.level == 1:
        goal, said = "On which page does “{heading}” begin? Answer with the number.", str(begin + 1)
        steps = to_chapter(draw, begin)
    elif draw.level == 2:
        goal, said = "On which page does it say “{text}”? Answer with the number.", str(page + 1)
        steps = searched(word)
    else:
        word = draw.pick([word for word in OFTEN if found(book.paper, word)])
        said = str(len(found(book.paper, word)))
        goal = "How many times does the word “{text}” occur? Answer with the number."
        steps = searched(word)
    goal = worded(goal, heading=heading, text=word)
    return setup(draw, book, goal, [*steps, answer(said)], answer=said)


def _is_at(world: World, path: str, page: int) -> bool:
    viewer = world.app("pdf")
    return viewer is not None and viewer.path == path and viewer.page == page


@template("pdf/go_to", levels=(1, 2, 3))
def go_to(draw: Draw) -> Setup:
    """Show a page by its number, the beginning of a chapter, or the page that says something."""
    book = booklet(draw, 5 + 2 * draw.level)
    heading = draw.pick(tuple(book.facts)[2:])
    page, _, _, word = book.facts[heading]
    steps: list[Intent] = [type_into("goto", str(page + 1)), key("enter")]
    goal = worded("Go to page {page} of the manual that is open.", page=page + 1)
    if draw.level == 2:
        page = _begin(book, heading)
        goal = worded("show the page where “{heading}” begins.", heading=heading)
        steps = to_chapter(draw, page)
    elif draw.level == 3:
        goal, steps = worded("show the page that says “{text}”.", text=word), searched(word)
    opened = {"opened": lambda world: (viewer := world.app("pdf")) is not None and viewer.path == book.path}
    return setup(
        draw,
        book,
        goal,
        steps,
        milestones={
            **(opened if draw.level > 1 else {}),
            "shown": (2, partial(_is_at, path=book.path, page=page)),
        },
    )


@template("pdf/bookmark", levels=(1, 2, 3))
def bookmark(draw: Draw) -> Setup:
    """Bookmark the beginning of a chapter, or the page that says something; two at level 3."""
    book = booklet(draw, 4 + draw.level)
    headings = draw.picks(tuple(book.facts)[1:], 2 if draw.level == 3 else 1)
    pages: list[int] = []
    words: list[str] = []
    steps: list[Intent] = []
    for heading in headings:
        page, _, _, word = book.facts[heading]
        if draw.level == 1:
            page = _begin(book, heading)
            steps = to_chapter(draw, page)
        else:
            words.append(word)
            steps += [click("find")] * bool(pages) + searched(word)
        pages.append(page)
        steps.append(click("bookmark"))
    if draw.level == 1:
        goal = worded("Bookmark the page on which “{heading}” begins.", heading=headings[0])
    else:
        goal = "bookmark the page that says “{text}”" + " and the page that says “{second}”" * (
            len(words) > 1
        )
        goal = worded(f"{goal}.", text=words[0], second=words[-1])

    def is_marked(world: World, page: int) -> bool:
        return Bookmark(book.path, page) in kept(world.store.get("pdf"))

    return setup(
        draw,
        book,
        goal,
        steps,
        milestones={f"page {page + 1}": partial(is_marked, page=page) for page in dict.fromkeys(pages)},
        changes=[page_record(book.path, page) for page in pages],
    )
