"""Mail that is to be written: new letters, answers, letters that are forwarded."""

from __future__ import annotations

from vlrl.envs.gui.emu.apps.parts.mailbox import Letter
from vlrl.envs.gui.emu.oracle.intents import click, open_app, type_into
from vlrl.envs.gui.emu.task import Draw, Predicate, Setup, template
from vlrl.envs.gui.emu.tasks.content.letters import (
    TOPICS,
    address,
    mailbox,
    sending,
    sent,
)
from vlrl.envs.gui.emu.tasks.mail.letters import COUNTS, MESSAGES, called, named, opened, writing
from vlrl.envs.gui.emu.wording import worded


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
    words = "to {to} with the subject “{subject}” and the text “{text}”"
    told = [worded(words, to=to, subject=topic, text=text) for to, topic, text in pairs]
    goal = worded("Send a mail {mail}.", mail=told[0])
    if draw.level == 2:
        goal = worded("Send a mail {mail}; then {second}.", mail=told[0], second=told[1])
    oracle = [open_app("mail")]
    for pair in pairs:
        oracle += [click("new"), *writing(*pair)]
    return Setup(
        goal=goal,
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
    words, name = called(draw, letter)
    return Setup(
        goal=worded(f"Reply to {words}: “{{text}}”", name=name, text=text),
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
        goal=worded("Forward {mail} to {to}, without changing it.", mail=named(draw, letter), to=to),
        data={"mail": letters},
        milestones={
            "begun": answering(letter),
            "sent": (2, sent(letters, (to, f"Fwd: {letter.subject}", quoted))),
        },
        changes=sending(letters, (to, f"Fwd: {letter.subject}")),
        oracle=[*opened(letter), click("forward"), type_into("to", to), click("send")],
    )
