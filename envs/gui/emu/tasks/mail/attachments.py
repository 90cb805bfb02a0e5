"""Mail and files: attachments that come and go, and texts that are copied from one app into another."""

from __future__ import annotations

from vlrl.envs.gui.emu.apps.calendar import HOURS, Appointment
from vlrl.envs.gui.emu.apps.parts.mailbox import Letter, person
from vlrl.envs.gui.emu.oracle.intents import Intent, choose, click, menu, open_app, type_into
from vlrl.envs.gui.emu.records import event_record
from vlrl.envs.gui.emu.task import Draw, Setup, template
from vlrl.envs.gui.emu.tasks.calendar import put_in
from vlrl.envs.gui.emu.tasks.content.letters import address, mailbox, numbered, sending, sent
from vlrl.envs.gui.emu.tasks.mail.letters import COUNTS, SECRETS, opened, some, writing
from vlrl.envs.gui.emu.wording import listed, quoted, worded

PAPERS = ("plan", "offer", "menu", "agenda", "rules", "prices", "timetable", "minutes")
LINES = (
    "Monday: soup and bread",
    "Meet at the north gate at 8:15",
    "Nobody may park in the yard",
    "Coffee 2.40, tea 1.90",
    "The bus leaves every ten minutes",
    "Bring warm clothes and a torch",
)

EVENTS = ("Chess evening", "Boat trip", "Fire drill", "Open house", "Flea market", "Reading", "Summer fair")


@template("mail/save_attachment", levels=(1, 2, 3))
def save_attachment(draw: Draw) -> Setup:
    """A letter's attachment is to be saved; at level 2 under another name, at level 3 one of several."""
    sender, names = address(draw), draw.picks(PAPERS, draw.level)
    texts = draw.picks(LINES, draw.level)
    attached = tuple((f"{name}.txt", text) for name, text in zip(names, texts, strict=True))
    letters = mailbox(
        draw, COUNTS[draw.level], Letter(0, "inbox", sender, "For you", "See below.", files=attached)
    )
    letter = next(letter for letter in letters if letter.files)
    which = draw.number(0, draw.level - 1)
    name = f"{names[which]}.txt" if draw.level == 1 else f"{names[which]} {draw.number(2, 99)}.txt"
    path = f"/Documents/{name}"
    rename = [] if draw.level == 1 else [type_into("name", name)]
    return Setup(
        goal=worded(
            "{person} sent you {file} by mail. Save it in Documents as {name}.",
            person=person(sender),
            file=f"{names[which]}.txt",
            name=name,
        ),
        data={"mail": letters},
        milestones={
            "opened": lambda world: (mail := world.app("mail")) is not None and mail.letter == letter.number,
            "saved": (2, lambda world: world.read(path) == texts[which]),
        },
        changes=[f"file:{path}"],
        oracle=[*opened(letter), click(f"attachment.{which}"), *rename, click("accept")],
    )


@template("mail/attach", levels=(1, 2, 3))
def attach(draw: Draw) -> Setup:
    """Files are to be sent: one, two, three."""
    names, to = draw.picks(PAPERS, draw.level + 2), address(draw)
    files = {f"/Documents/{name}.txt": draw.pick(LINES) for name in names}
    wanted, letters = names[: draw.level], mailbox(draw, 5)
    adding = []
    for name in wanted:
        adding += [click("attach"), type_into("name", f"{name}.txt"), click("accept")]
    attached = tuple((f"{name}.txt", files[f"/Documents/{name}.txt"]) for name in wanted)
    return Setup(
        goal=worded(
            "Send {files} from Documents to {to} in one mail, subject “{subject}”, text “{text}”",
            files=listed([f"{name}.txt" for name in wanted]),
            to=to,
            subject="Papers",
            text="Here you are.",
        ),
        files=files,
        data={"mail": letters},
        milestones={
            "attached": lambda world: (
                any(letter.files for letter in world.store["mail"])
                or ((mail := world.app("mail")) is not None and bool(mail.attached))
            ),
            "sent": (3, sent(letters, (to, "Papers", "Here you are."), files=attached)),
        },
        changes=sending(letters, (to, "Papers")),
        oracle=[open_app("mail"), click("new"), *adding, *writing(to, "Papers", "Here you are.")],
    )


@template("mail/to_file", levels=(2, 3))
def to_file(draw: Draw) -> Setup:
    """A number in a letter is to be put into a new file; at level 3 the letter has to be searched for."""
    what, number, sender = draw.pick(SECRETS), str(draw.number(1000, 99999)), address(draw)
    place = "inbox" if draw.level == 2 else draw.pick(("work", "archive"))
    text = f"Hello,\n\nthe {what} is {number}."
    letters = mailbox(draw, COUNTS[draw.level], Letter(0, place, sender, "As promised", text))
    wanted = numbered(letters, lambda letter: letter.other == sender)[0]
    path = f"/Documents/{what}.txt"
    search = [] if draw.level == 2 else [type_into("query", what)]
    return Setup(
        goal=worded(
            "{person} sent you the {what} by mail. Write it, the number alone, into a new text file "
            "“{what}.txt” in Documents.",
            person=person(sender),
            what=what,
        ),
        data={"mail": letters},
        milestones={
            "read": lambda world: any(one.number == wanted and one.is_read for one in world.store["mail"]),
            "typed": lambda world: (
                (editor := world.app("editor")) is not None and editor.text.strip() == number
            ),
            "saved": (2, lambda world: str(world.read(path)).strip() == number),
        },
        changes=[f"file:{path}"],
        oracle=[
            open_app("mail"),
            *search,
            choose("letter", wanted),
            open_app("editor"),
            type_into("text", number),
            menu("file", "save_as"),
            type_into("name", f"{what}.txt"),
            click("accept"),
        ],
    )


@template("mail/from_file", levels=(2, 3))
def from_file(draw: Draw) -> Setup:
    """Somebody asks for what is in a file; at level 3 for two."""
    whats = draw.picks(SECRETS, draw.level - 1)
    numbers = [str(draw.number(1000, 99999)) for _ in whats]
    files = {
        f"/Documents/{what}.txt": f"{what}: {number}" for what, number in zip(whats, numbers, strict=True)
    }
    sender, asked = address(draw), " and the ".join(whats)
    question = Letter(
        0, "inbox", sender, "A question", f"Can you tell me the {asked}? Only the digits, please."
    )
    letters = mailbox(draw, COUNTS[draw.level], question)
    letter = next(one for one in letters if one.other == sender)
    looked = []
    for what in whats:
        looked += [
            open_app("editor"),
            menu("file", "open"),
            type_into("name", f"{what}.txt"),
            click("accept"),
        ]
    text = " ".join(numbers)
    between = ", in the order that was asked, with a blank between them" if len(whats) > 1 else ""
    goal = "Reply to the mail from {person}. What was asked for is in Documents; write just the digits"
    return Setup(
        goal=worded(f"{goal}{between}.", person=person(sender)),
        files={**files, "/Documents/other.txt": draw.pick(LINES)},
        data={"mail": letters},
        milestones={
            "read": lambda world: (
                any(one.number == letter.number and one.is_read for one in world.store["mail"])
                and world.app("editor") is not None
            ),
            "sent": (3, sent(letters, (sender, "Re: A question", text))),
        },
        changes=sending(letters, (sender, "Re: A question")),
        oracle=[*opened(letter), *looked, open_app("mail"), click("reply"), *writing("", "", text)],
    )


@template("mail/to_calendar", levels=(2, 3))
def to_calendar(draw: Draw) -> Setup:
    """Somebody tells by mail when something is; at level 3 there are two such letters."""
    count, sender = draw.level - 1, address(draw)
    days = draw.picks(range(1, 29), count)
    wanted = [
        Appointment(f"2026-03-{day:02d}", draw.pick(HOURS), title)
        for day, title in zip(days, draw.picks(EVENTS, count), strict=True)
    ]
    told = [f"It is on {int(one.day[8:])} March 2026 at {one.time}. Please come." for one in wanted]
    special = [Letter(0, "inbox", sender, one.title, text) for one, text in zip(wanted, told, strict=True)]
    letters = mailbox(draw, COUNTS[draw.level], *special)
    oracle: list[Intent] = [open_app("mail")]
    for one in wanted:
        if one is not wanted[0] and draw.looks["form"] == "mobile":
            oracle.append(click("list"))
        oracle.append(choose("letter", next(n.number for n in letters if n.subject == one.title)))
    oracle.append(open_app("calendar"))
    for one in wanted:
        oracle += put_in(one)
    return Setup(
        goal=worded(
            "Put {titles} into the calendar, under this title. {person} told you when by mail.",
            titles=listed([quoted(one.title) for one in wanted]),
            person=person(sender),
        ),
        data={"mail": letters},
        milestones={
            "read": some([n.number for n in letters if n.other == sender], is_read=True),
            "one": lambda world: any(one in (world.store.get("calendar") or ()) for one in wanted),
            "all": (2, lambda world: sorted(world.store.get("calendar") or ()) == sorted(wanted)),
        },
        changes=[event_record(one) for one in wanted],
        oracle=oracle,
    )
