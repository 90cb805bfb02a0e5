"""Mail: find and sort letters, and answer questions about them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from vlrl.envs.gui.emu.apps.parts.mailbox import FOLDERS, Letter, person
from vlrl.envs.gui.emu.oracle.intents import Intent, answer, choose, click, context, drag, open_app, type_into
from vlrl.envs.gui.emu.records import letter_record
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.task import Draw, Predicate, Setup, template
from vlrl.envs.gui.emu.tasks.content.letters import (
    TOPICS,
    address,
    changed,
    holds,
    mailbox,
    numbered,
    signed,
)
from vlrl.envs.gui.emu.wording import chained, listed, quoted, worded

COUNTS = {1: 6, 2: 10, 3: 16}
MESSAGES = (
    "I will be there at nine.",
    "Thank you, that helps a lot.",
    "Can we do it next week?",
    "The keys are under the mat.",
    "Please send me the new plan.",
    "Two tickets, please.",
    "I agree with everything.",
    "Tuesday suits me best.",
    "Sorry, I cannot come.",
    "It works again, thanks!",
)
SECRETS = ("door code", "seat number", "order number", "locker number", "extension", "ticket number")


def called(draw: Draw, letter: Letter) -> tuple[str, str]:
    """What a goal calls a letter, by its sender or its subject: the words around {name}, and the name."""
    by_sender = ("the mail from {name}", person(letter.other))
    return draw.pick((by_sender, ("the mail “{name}”", letter.subject)))


def named(draw: Draw, letter: Letter) -> str:
    """What a goal calls a letter."""
    words, name = called(draw, letter)
    return worded(words, name=name)


def opened(letter: Letter) -> list[Intent]:
    """Look at a letter of the inbox."""
    return [open_app("mail"), choose("letter", letter.number)]


def some(wanted: list[int], **values: object) -> Predicate:
    """Whether one of the letters is as it should be."""
    return lambda world: any(
        letter.number in wanted and all(getattr(letter, key) == value for key, value in values.items())
        for letter in world.store["mail"]
    )


def sorting(
    goal: str, letters: tuple[Letter, ...], wanted: list[int], oracle: list[Intent], **values: object
) -> Setup:
    """A task after which the wanted letters are different, and no other is."""
    first: dict[str, Predicate] = {"one": some(wanted, **values)} if len(wanted) > 1 else {}
    return Setup(
        goal=goal,
        data={"mail": letters},
        milestones={**first, "all": (2, holds(changed(letters, wanted, **values)))},
        changes=[letter_record(number) for number in wanted],
        oracle=[open_app("mail"), *oracle],
    )


@template("mail/star", levels=(1, 2, 3))
def star(draw: Draw) -> Setup:
    """Star as many letters as the level says, one by one."""
    letters = mailbox(draw, COUNTS[draw.level])
    wanted = draw.picks(letters, draw.level)
    names = listed([named(draw, letter) for letter in wanted])
    oracle = [context(f"letter.{letter.number}", "star") for letter in wanted]
    goal = worded("In {app}, put a star on {mails}, and on no other.", app=tr("Mail"), mails=names)
    return sorting(goal, letters, [letter.number for letter in wanted], oracle, is_starred=True)


@template("mail/delete", levels=(1, 2, 3))
def delete(draw: Draw) -> Setup:
    """One letter, or all of one sender."""
    sender, topics = address(draw), draw.picks(tuple(TOPICS), draw.level)
    special = [Letter(0, "inbox", sender, topic, signed(TOPICS[topic], sender)) for topic in topics]
    letters = mailbox(draw, COUNTS[draw.level], *special)
    wanted = numbered(letters, lambda letter: letter.other == sender)
    what = worded("the mail “{name}”", name=topics[0])
    if draw.level > 1:
        what = worded("every mail from {person}", person=person(sender))
    oracle = [context(f"letter.{number}", "delete") for number in wanted]
    goal = worded("Delete {mails} in {app}.", mails=what, app=tr("Mail"))
    return sorting(goal, letters, wanted, oracle, folder="trash")


@template("mail/file", levels=(1, 2, 3))
def file(draw: Draw) -> Setup:
    """Letters are to be moved into a folder."""
    letters, place = mailbox(draw, COUNTS[draw.level]), draw.pick(("work", "family", "archive"))
    chosen = draw.picks(letters, draw.level)
    names = listed([named(draw, letter) for letter in chosen])
    wanted = [letter.number for letter in chosen]
    is_dragged = draw.looks["form"] == "desktop" and draw.number(0, 1) == 1
    if is_dragged:
        oracle = [drag(f"letter.{number}", f"folder.{place}") for number in wanted]
    else:
        oracle = [context(f"letter.{number}", f"move.{place}") for number in wanted]
    goal = "In {app}, move {mails} to the folder “{folder}”."
    goal = worded(goal, app=tr("Mail"), mails=names, folder=tr(FOLDERS[place]))
    return sorting(goal, letters, wanted, oracle, folder=place)


@template("mail/rescue", levels=(1, 2))
def rescue(draw: Draw) -> Setup:
    """Letters were deleted by mistake, and are to go back."""
    topics, sender = draw.picks(tuple(TOPICS), draw.level), address(draw)
    special = [
        Letter(0, "trash", sender, topic, signed(TOPICS[topic], sender), is_read=True) for topic in topics
    ]
    special.append(Letter(0, "trash", address(draw), "Win a car!", "Click now."))
    letters = mailbox(draw, 6 + draw.level, *special)
    wanted = numbered(letters, lambda letter: letter.other == sender)
    names = listed([quoted(topic) for topic in topics])
    oracle = [choose("folder", "trash"), *(context(f"letter.{number}", "move.inbox") for number in wanted)]
    goal = "Somebody deleted mail by mistake. Move {mails} from the {trash} back to the {inbox}."
    goal = worded(goal, mails=names, trash=tr("Trash"), inbox=tr("Inbox"))
    return sorting(goal, letters, wanted, oracle, folder="inbox")


@template("mail/secret", levels=(1, 2, 3))
def secret(draw: Draw) -> Setup:
    """A number in a letter is asked for; it may be in another folder, and at level 3 one has to search."""
    what, number, sender = draw.pick(SECRETS), draw.number(1000, 99999), address(draw)
    place = draw.pick(("inbox", "work", "family", "archive")) if draw.level > 1 else "inbox"
    text = f"The {what} is {number}. Do not tell anybody."
    letters = mailbox(
        draw, COUNTS[draw.level], Letter(0, place, sender, draw.pick(("Important", "As promised")), text)
    )
    wanted = letters[numbered(letters, lambda letter: letter.other == sender)[0] - letters[0].number]
    where = {1: "{person} wrote to you.", 2: "It is in the folder “{folder}”.", 3: "It may be in any folder."}
    said = worded(where[draw.level], person=person(sender), folder=tr(FOLDERS[place]))
    goal = f"{worded('What is the {what} in a mail that you got?', what=what)} {said}"
    find = (
        [type_into("query", what)]
        if draw.level == 3
        else [choose("folder", place)]
        if place != "inbox"
        else []
    )
    return Setup(
        goal=f"{goal} {worded('Answer with the number.')}",
        data={"mail": letters},
        milestones={
            "found": lambda world: (mail := world.app("mail")) is not None and mail.letter == wanted.number
        },
        answer=str(number),
        oracle=[open_app("mail"), *find, choose("letter", wanted.number), answer(str(number))],
    )


@template("mail/count", levels=(1, 2))
def count(draw: Draw) -> Setup:
    """How many letters are from one sender, and when the first of them came."""
    sender, topics = address(draw), draw.picks(tuple(TOPICS), draw.number(2, 7))
    special = [Letter(0, "inbox", sender, topic, signed(TOPICS[topic], sender)) for topic in topics]
    letters = mailbox(draw, 12 if draw.level == 1 else 16, *special)
    oldest = [letter for letter in letters if letter.other == sender][-1]
    said = f"{len(topics)}, {oldest.date}"
    return Setup(
        goal=worded(
            "How many mails from {person} are in the {inbox}, and of which day is the oldest? Answer as "
            "“4, 17 May”.",
            person=person(sender),
            inbox=tr("Inbox"),
        ),
        data={"mail": letters},
        milestones={"looked": lambda world: world.app("mail") is not None},
        answer=said,
        oracle=[open_app("mail"), type_into("query", sender), choose("letter", oldest.number), answer(said)],
    )


def writing(to: str, subject: str, body: str) -> list[Intent]:
    """Fill the letter in and send it."""
    return [
        *([type_into("to", to)] if to else []),
        *([type_into("subject", subject)] if subject else []),
        type_into("body", body),
        click("send"),
    ]


@template("mail/tidy", levels=(2, 3))
def tidy(draw: Draw) -> Setup:
    """Some letters are to be starred, some deleted, some moved."""
    letters = mailbox(draw, COUNTS[draw.level])
    first, second, third = draw.picks(letters, 3)
    steps: list[tuple[str, str, Letter, dict[str, Any]]] = [
        ("star", "put a star on “{subject}”", first, {"is_starred": True}),
        ("delete", "delete “{subject}”", second, {"folder": "trash"}),
        ("move.work", "move to “{folder}” “{subject}”", third, {"folder": "work"}),
    ]
    steps = steps[: draw.level]
    after: Collection[Letter] = letters
    for _, _, letter, values in steps:
        after = changed(after, [letter.number], **values)
    told = [worded(word, subject=one.subject, folder=tr("Work")) for _, word, one, _ in steps]
    marks = {command: some([letter.number], **values) for command, _, letter, values in steps}
    oracle = [open_app("mail"), *(context(f"letter.{letter.number}", id) for id, _, letter, _ in steps)]
    return Setup(
        goal=worded(
            "Tidy up the {inbox} of {app}: {steps}. Leave the rest as it is.",
            inbox=tr("Inbox"),
            app=tr("Mail"),
            steps=chained("{first}; {next}", told),
        ),
        data={"mail": letters},
        milestones={**marks, "tidy": (2, holds(after))},
        changes=[letter_record(letter.number) for _, _, letter, _ in steps],
        oracle=oracle,
    )
