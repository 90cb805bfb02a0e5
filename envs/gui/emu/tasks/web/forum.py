"""A forum in the browser: like, answer, begin a thread."""

from __future__ import annotations

from dataclasses import replace

from vlrl.envs.gui.emu.oracle.intents import choose, click, type_into
from vlrl.envs.gui.emu.records import post_record, thread_record
from vlrl.envs.gui.emu.sites import forum
from vlrl.envs.gui.emu.task import Draw, Setup, template
from vlrl.envs.gui.emu.tasks.content.web import browse, follow, is_at, talk
from vlrl.envs.gui.emu.wording import listed, worded

REPLIES = (
    "I had the same, it went away.",
    "Thank you, that worked!",
    "Try it again in spring.",
    "No idea, sorry.",
    "Ask your neighbour.",
)
NEWS = {
    "Looking for a ladder": ("Garden", "Who can lend me one for a day?"),
    "Lost on the coast path": ("Travel", "Where does it go on after the bridge?"),
    "Backup on paper": ("Computers", "Is that a good idea?"),
    "Too much salt": ("Cooking", "Can it be saved?"),
    "Apples in June": ("Garden", "Which kind is ripe so early?"),
    "Slow trains": ("Travel", "Which is the slowest of all?"),
}


@template("forms/like", levels=(1, 2, 3))
def like(draw: Draw) -> Setup:
    """Give likes to as many posts as the level says, in one thread."""
    known = talk(draw, 2 + 2 * draw.level)
    thread = draw.pick(known)
    wanted = draw.picks(range(1, 4), draw.level)
    names = listed([thread.posts[index].author for index in wanted])
    posts = (replace(post, is_liked=index in wanted) for index, post in enumerate(thread.posts))
    liked = replace(thread, posts=tuple(posts))
    after = tuple(liked if one is thread else one for one in known)
    where = f"{forum.HOST}/thread/{thread.number}"
    goal = "In the thread “{title}” at {host}, like what {names} wrote, and nothing else."
    goal += "|one" * (len(wanted) == 1)
    return Setup(
        goal=worded(goal, title=thread.title, host=forum.HOST, names=names),
        data={"forum": known},
        milestones={"found": is_at(where), "liked": (2, lambda world: world.store["forum"] == after)},
        changes=[post_record(thread.number, index) for index in wanted],
        oracle=[
            *browse(f"{forum.HOST}/"),
            *follow(where),
            *(click(f"like.{index}") for index in wanted),
        ],
    )


@template("forms/reply", levels=(1, 2))
def reply(draw: Draw) -> Setup:
    """An answer is to be written."""
    known, text = talk(draw, 4 * draw.level), draw.pick(REPLIES)
    thread = draw.pick(known)
    answered = replace(thread, posts=(*thread.posts, forum.Post(forum.ME, text)))
    after = tuple(answered if one is thread else one for one in known)
    where = f"{forum.HOST}/thread/{thread.number}"
    return Setup(
        goal=worded(
            "Reply in the thread “{title}” at {host}: “{text}”",
            title=thread.title,
            host=forum.HOST,
            text=text,
        ),
        data={"forum": known},
        milestones={"found": is_at(where), "posted": (2, lambda world: world.store["forum"] == after)},
        changes=[post_record(thread.number, len(thread.posts))],
        oracle=[*browse(f"{forum.HOST}/"), *follow(where), type_into("reply", text), click("post")],
    )


@template("forms/thread", levels=(2, 3))
def begin(draw: Draw) -> Setup:
    """A thread is to be begun; at level 3 two."""
    known, oracle = talk(draw, 5), browse(f"{forum.HOST}/")
    told: list[str] = []
    after = known
    for title in draw.picks(tuple(NEWS), draw.level - 1):
        board, text = NEWS[title]
        oracle += [*follow(f"{forum.HOST}/new"), choose("board", board), type_into("title", title)]
        oracle += [type_into("text", text), click("begin")]
        if not told and draw.level == 3:
            oracle += follow(f"{forum.HOST}/")
        words = "in the board {board}, title “{title}”, text “{text}”"
        told.append(worded(words, board=board, title=title, text=text))
        number = after[-1].number + 1
        after = (*after, forum.Thread(number, board, title, (forum.Post(forum.ME, text),)))
    goal = "Begin a new thread at {host} {thread}" + "; then one {second}" * (len(told) > 1)
    return Setup(
        goal=worded(goal, host=forum.HOST, thread=told[0], second=told[-1]),
        data={"forum": known},
        milestones={
            "form": lambda world: is_at(f"{forum.HOST}/new")(world) or len(world.store["forum"]) > len(known),
            "posted": (2, lambda world: world.store["forum"] == after),
        },
        changes=[
            name(one.number)
            for one in after[len(known) :]
            for name in (thread_record, lambda n: post_record(n, 0))
        ],
        oracle=oracle,
    )
