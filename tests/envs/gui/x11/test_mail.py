"""Mailboxes as the verifiers of mail tasks see them: as Claws Mail leaves them, and what is not the task."""

from __future__ import annotations

import re

import numpy as np
import pytest

from vlrl.envs.gui.screen import Verdict
from vlrl.envs.gui.x11.sandbox.home import FOLDER, Tree
from vlrl.envs.gui.x11.task import Setup, judge
from vlrl.envs.gui.x11.tasks import TASKS

QUEUED = """\
AF:
S:quinn@example.org
SSV:localhost
R:<{to}>
SCF:#mh/Mailbox/sent
X-Claws-End-Special-Headers: 1
Date: Thu, 26 Nov 2026 18:25:41 +0000
From: Quinn Oxley <quinn@example.org>
To: {to}
Subject: {subject}
In-Reply-To: {answers}
References: {answers}
MIME-Version: 1.0
Content-Type: text/plain; charset=US-ASCII
Content-Transfer-Encoding: 7bit

{text}
"""


def made(name: str) -> tuple[Setup, Tree]:
    """A task of the first difficulty, and its files at the beginning."""
    setup = TASKS[name].make(np.random.default_rng(3), 1)
    return setup, {p.rstrip("/"): FOLDER if p.endswith("/") else c for p, c in setup.files.items()}


def judged(setup: Setup, before: Tree, after: Tree) -> Verdict:
    return judge(setup, before, after, None)


def queued(**fields: str) -> bytes:
    return QUEUED.format(**{"to": "", "subject": "", "answers": "", "text": ""} | fields).encode()


def test_a_mail_counts_that_waits_to_be_sent_as_it_was_asked_for() -> None:
    setup, before = made("mail_write")
    found = re.search(r"to (\S+) with the subject “(.*)” and the text “(.*?)”", setup.goal)
    assert found
    right = dict(zip(("to", "subject", "text"), found.groups(), strict=True))
    assert judged(setup, before, before | {"Mail/queue/1": queued(**right)}).success
    for wrong in ({"to": "eve@example.org"}, {"subject": "Other"}, {"text": f"> {right['text']}"}):
        verdict = judged(setup, before, before | {"Mail/queue/1": queued(**right | wrong)})
        assert not verdict.success
        assert 0 < verdict.progress < 1
    assert not judged(setup, before, before | {"Mail/draft/1": queued(**right)}).success
    twice = {"Mail/queue/1": queued(**right), "Mail/queue/2": queued(**right)}
    assert judged(setup, before, before | twice).progress == 0


def test_a_reply_answers_the_mail_and_not_another_of_its_sender() -> None:
    setup, before = made("mail_reply")
    found = re.search(r"Reply to (\w+) .*'s mail “(.*)” with the line “(.*)”", setup.goal)
    assert found
    sender, subject, text = found.groups()
    ids = {
        subject in content.decode(): re.search(r"Message-ID: (\S+)", content.decode())
        for path, content in before.items()
        if path.startswith("Mail/inbox/")
    }
    for is_it, message_id in ids.items():
        assert message_id
        mail = queued(to=f"{sender.lower()}@example.org", answers=message_id[1], text=text)
        assert judged(setup, before, before | {"Mail/queue/1": mail}).success == is_it


@pytest.mark.parametrize("name", ["mail_move", "mail_delete"])
def test_mails_are_known_by_their_ids_wherever_they_are_put(name: str) -> None:
    setup, before = made(name)
    inbox = {path: content for path, content in before.items() if path.startswith("Mail/inbox/")}
    folder = re.search(r"into the folder (\w+)", setup.goal)
    target = f"Mail/{folder[1]}/" if folder else "Mail/trash/"
    said = re.search(r"from (.*) in the inbox|“(.*)”", setup.goal)
    assert said
    word = (said[1] or said[2]).encode()
    (moved,) = [path for path, content in inbox.items() if word in content]
    after = {path: content for path, content in before.items() if path != moved}
    assert judged(setup, before, after | {f"{target}7": inbox[moved]}).success
    assert not judged(setup, before, before | {f"{target}7": inbox[moved]}).success, "it was copied"
    other = next(path for path in inbox if path != moved)
    both = {path: content for path, content in after.items() if path != other}
    assert not judged(
        setup, before, both | {f"{target}1": inbox[moved], f"{target}2": inbox[other]}
    ).success, "another one, too"
