"""Mail, used as a person would."""

from __future__ import annotations

from dataclasses import replace

import pytest
from at_work import do, running

from vlrl.envs.gui.emu.apps.parts.mailbox import Letter
from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.oracle.intents import choose, click, context, drag, type_into
from vlrl.envs.gui.screen import Form

LETTERS = (
    Letter(1, "inbox", "ada.lind@delta.example", "Boats", "Two are red.", "2 Mar", files=(("a.txt", "aye"),)),
    Letter(2, "inbox", "ben.holm@delta.example", "Trains", "The last one leaves at ten.", "1 Mar"),
)


def mail_on(form: Form = "desktop") -> Desktop:
    """Mail with two letters."""
    return running("mail", form, mail=LETTERS)


def names_of(desktop: Desktop) -> list[str]:
    return [element.name for element in desktop.elements() if element.role == "row"]


def letters(desktop: Desktop) -> tuple[Letter, ...]:
    found: tuple[Letter, ...] = desktop.world.store["mail"]
    return found


def test_a_letter_that_is_looked_at_is_read_and_its_text_cannot_be_changed() -> None:
    desktop = mail_on()
    do(desktop, choose("letter", 1), type_into("shown", "scribble"))
    assert letters(desktop) == (replace(LETTERS[0], is_read=True), LETTERS[1])


@pytest.mark.parametrize("form", ["desktop", "mobile"])
def test_what_is_deleted_is_in_the_trash_first_and_then_gone(form: Form) -> None:
    desktop = mail_on(form)
    do(desktop, context("letter.2", "delete"))
    assert letters(desktop)[1].folder == "trash" and names_of(desktop) == ["Ada Lind"]
    do(desktop, choose("folder", "trash"), context("letter.2", "delete"))
    assert [letter.number for letter in letters(desktop)] == [1]


def test_a_row_is_dragged_into_a_folder() -> None:
    desktop = mail_on()
    do(desktop, drag("letter.2", "folder.work"))
    assert [letter.folder for letter in letters(desktop)] == ["inbox", "work"]


def test_searching_looks_into_every_folder_and_every_word() -> None:
    desktop = mail_on()
    do(desktop, context("letter.2", "move.archive"), type_into("query", "ten LAST"))
    assert names_of(desktop) == ["Ben Holm"]
    do(desktop, choose("folder", "inbox"))
    assert names_of(desktop) == ["Ada Lind"]


def test_an_answer_goes_to_who_wrote() -> None:
    desktop = mail_on()
    do(desktop, choose("letter", 2), click("reply"), type_into("body", "Thanks."), click("send"))
    sent = letters(desktop)[0]
    assert (sent.number, sent.folder, sent.other) == (3, "sent", "ben.holm@delta.example")
    assert (sent.subject, sent.text) == ("Re: Trains", "Thanks.")


def test_what_is_forwarded_keeps_its_text_and_attachments() -> None:
    desktop = mail_on()
    do(desktop, choose("letter", 1), click("forward"), type_into("to", "cy@a.example"), click("send"))
    sent = letters(desktop)[0]
    assert (sent.subject, sent.text, sent.files) == ("Fwd: Boats", "> Two are red.", (("a.txt", "aye"),))


@pytest.mark.parametrize("address", ["", "nobody", "a b@c.example", "@c.example", "x@y"])
def test_an_address_that_is_none_sends_nothing(address: str) -> None:
    desktop = mail_on()
    do(desktop, click("new"), type_into("to", address) if address else click("to"), click("send"))
    assert len(letters(desktop)) == 2
    do(desktop, click("ok"))
    assert desktop.world.app("mail").is_writing


def test_attachments_come_from_the_disk_and_go_there() -> None:
    desktop = mail_on()
    do(desktop, choose("letter", 1), click("attachment.0"), click("accept"))
    assert desktop.world.read("/Documents/a.txt") == "aye"
    do(desktop, click("new"), click("attach"), type_into("name", "a.txt"), click("accept"))
    do(desktop, type_into("to", "cy@a.example"), click("send"))
    assert letters(desktop)[0].files == (("a.txt", "aye"),)
