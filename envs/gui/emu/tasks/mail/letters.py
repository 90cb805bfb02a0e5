"""Mail: find and sort letters, answer questions about them, write some."""

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
    sending,
    sent,
    signed,
)

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


def named(draw: Draw, letter: Letter) -> str:
    """What a goal calls a letter: by its sender or its subject."""
    return draw.pick((f"the mail from {person(letter.other)}", f"the mail “{letter.subject}”"))


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
    names = " and ".join(named(draw, letter) for letter in wanted)
    oracle = [context(f"letter.{letter.number}", "star") for letter in wanted]
    goal = f"In {tr('Mail')}, put a star on {names}, and on no other."
    return sorting(goal, letters, [letter.number for letter in wanted], oracle, is_starred=True)


@template("mail/delete", levels=(1, 2, 3))
def delete(draw: Draw) -> Setup:
    """One letter, or all of one sender."""
    sender, topics = address(draw), draw.picks(tuple(TOPICS), draw.level)
    special = [Letter(0, "inbox", sender, topic, signed(TOPICS[topic], sender)) for topic in topics]
    letters = mailbox(draw, COUNTS[draw.level], *special)
    wanted = numbered(letters, lambda letter: letter.other == sender)
    what = f"the mail “{topics[0]}”" if draw.level == 1 else f"every mail from {person(sender)}"
    oracle = [context(f"letter.{number}", "delete") for number in wanted]
    return sorting(f"Delete {what} in {tr('Mail')}.", letters, wanted, oracle, folder="trash")


@template("mail/file", levels=(1, 2, 3))
def file(draw: Draw) -> Setup:
    """Letters are to be moved into a folder."""
    letters, place = mailbox(draw, COUNTS[draw.level]), draw.pick(("work", "family", "archive"))
    chosen = draw.picks(letters, draw.level)
    names = " and ".join(named(draw, letter) for letter in chosen)
    wanted = [letter.number for letter in chosen]
    is_dragged = draw.looks["form"] == "desktop" and draw.number(0, 1) == 1
    if is_dragged:
        oracle = [drag(f"letter.{number}", f"folder.{place}") for number in wanted]
    else:
        oracle = [context(f"letter.{number}", f"move.{place}") for number in wanted]
    goal = f"In {tr('Mail')}, move {names} to the folder “{tr(FOLDERS[place])}”."
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
    names = " and ".join(f"“{topic}”" for topic in topics)
    oracle = [choose("folder", "trash"), *(context(f"letter.{number}", "move.inbox") for number in wanted)]
    goal = f"Somebody deleted mail by mistake. Move {names} from the {tr('Trash')} back to the {tr('Inbox')}."
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
    where = {1: f"{person(sender)} wrote to you.", 2: f"It is in the folder “{tr(FOLDERS[place])}”."}
    goal = f"What is the {what} in a mail that you got? {where.get(draw.level, 'It may be in any folder.')}"
    find = (
        [type_into("query", what)]
        if draw.level == 3
        else [choose("folder", place)]
        if place != "inbox"
        else []
    )
    return Setup(
        goal=goal + " Answer with the number.",
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
        goal=f"How many mails from {person(sender)} are in the {tr('Inbox')}, and of which day is the "
        "oldest? Answer as “4, 17 May”.",
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


@template("mail/write", levels=(1, 2))
def compose(draw: Draw) -> Setup:
    """A letter is to be written, at level 2 two."""
    letters = mailbox(draw, 5)
    pairs = [
        (address(draw), topic, text)
        for topic, text in zip(
            draw.picks(tuple(TOPICS), draw.level), draw.picks(MESSAGES, draw.level), strict=True
        )
    ]
    told = "; then ".join(
        f"to {to} with the subject “{topic}” and the text “{text}”" for to, topic, text in pairs
    )
    oracle = [open_app("mail")]
    for pair in pairs:
        oracle += [click("new"), *writing(*pair)]
    return Setup(
        goal=f"Send a mail {told}.",
        data={"mail": letters},
        milestones={
            "begun": lambda world: (
                (mail := world.app("mail")) is not None and bool(mail.to or len(world.store["mail"]) > 5)
            ),
            "sent": (3, sent(letters, *pairs)),
        },
        changes=sending(letters, *((to, topic) for to, topic, _ in pairs)),
        oracle=oracle,
    )


def answering(letter: Letter) -> Predicate:
    """Whether an answer to a letter has been begun, or sent."""
    subjects = (f"Re: {letter.subject}", f"Fwd: {letter.subject}")
    return lambda world: (
        (mail := world.app("mail")) is not None
        and (
            (mail.is_writing and mail.subject in subjects)
            or any(one.subject in subjects for one in world.store["mail"])
        )
    )


@template("mail/reply", levels=(1, 2))
def reply(draw: Draw) -> Setup:
    """A letter is to be answered."""
    letters, text = mailbox(draw, COUNTS[draw.level]), draw.pick(MESSAGES)
    letter = draw.pick(letters)
    return Setup(
        goal=f"Reply to {named(draw, letter)}: “{text}”",
        data={"mail": letters},
        milestones={
            "begun": answering(letter),
            "sent": (2, sent(letters, (letter.other, f"Re: {letter.subject}", text))),
        },
        changes=sending(letters, (letter.other, f"Re: {letter.subject}")),
        oracle=[*opened(letter), click("reply"), *writing("", "", text)],
    )


@template("mail/forward", levels=(1, 2))
def forward(draw: Draw) -> Setup:
    """A letter is to be forwarded, as it is."""
    letters, to = mailbox(draw, COUNTS[draw.level]), address(draw)
    letter = draw.pick(letters)
    quoted = "\n".join(f"> {line}" for line in letter.text.split("\n"))
    return Setup(
        goal=f"Forward {named(draw, letter)} to {to}, without changing it.",
        data={"mail": letters},
        milestones={
            "begun": answering(letter),
            "sent": (2, sent(letters, (to, f"Fwd: {letter.subject}", quoted))),
        },
        changes=sending(letters, (to, f"Fwd: {letter.subject}")),
        oracle=[*opened(letter), click("forward"), type_into("to", to), click("send")],
    )


@template("mail/tidy", levels=(2, 3))
def tidy(draw: Draw) -> Setup:
    """Some letters are to be starred, some deleted, some moved."""
    letters = mailbox(draw, COUNTS[draw.level])
    first, second, third = draw.picks(letters, 3)
    steps: list[tuple[str, str, Letter, dict[str, Any]]] = [
        ("star", "put a star on", first, {"is_starred": True}),
        ("delete", "delete", second, {"folder": "trash"}),
        ("move.work", f"move to “{tr('Work')}”", third, {"folder": "work"}),
    ]
    steps = steps[: draw.level]
    after: Collection[Letter] = letters
    for _, _, letter, values in steps:
        after = changed(after, [letter.number], **values)
    told = "; ".join(f"{word} “{letter.subject}”" for _, word, letter, _ in steps)
    marks = {command: some([letter.number], **values) for command, _, letter, values in steps}
    oracle = [open_app("mail"), *(context(f"letter.{letter.number}", id) for id, _, letter, _ in steps)]
    return Setup(
        goal=f"Tidy up the {tr('Inbox')} of {tr('Mail')}: {told}. Leave the rest as it is.",
        data={"mail": letters},
        milestones={**marks, "tidy": (2, holds(after))},
        changes=[letter_record(letter.number) for _, _, letter, _ in steps],
        oracle=oracle,
    )
