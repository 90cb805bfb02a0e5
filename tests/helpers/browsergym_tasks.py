"""Tasks of the tests, as a package of BrowserGym registers its own: pages of this file, no server.

It is run by the interpreter that has BrowserGym.
"""

import base64
import io

import PIL.Image
from browsergym.core.registration import register_task
from browsergym.core.task import AbstractBrowserTask


def square(colour):
    """An image as goals have it: a URL with its data."""
    data = io.BytesIO()
    PIL.Image.new("RGB", (8, 8), colour).save(data, "PNG")
    return f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"


class PageTask(AbstractBrowserTask):
    """A page and a goal; `score` gives the reward and whether it is over."""

    html, goal = "<p>nothing</p>", "Do it."

    def __init__(self, seed, **kwargs):
        super().__init__(seed)
        self.viewport, self.slow_mo = {"width": 320, "height": 240}, 0
        self.options, self.paid = kwargs, 0.0

    def setup(self, page):
        self.number = int(self.random.randint(100, 999))
        html = f"<!DOCTYPE html><style>body{{margin:0}}</style>{self.html % {'n': self.number}}"
        page.goto(f"data:text/html;base64,{base64.b64encode(html.encode()).decode()}")
        page._bgym_scale_factor = 2.0
        return self.goal if isinstance(self.goal, str) else list(self.goal), {}

    def validate(self, page, chat_messages):
        total, done = self.score(page, chat_messages)
        gained, self.paid = total - self.paid, total
        return gained, done, "", {}

    def score(self, page, messages):
        return 0.0, False


class Question(PageTask):
    """Goal with an image; an answer that asks is replied to."""

    html = "<h1>The number is %(n)d</h1>"
    goal = (
        {"type": "text", "text": "Which number is beside this?"},
        {"type": "image_url", "image_url": {"url": square((255, 0, 0))}},
    )

    def validate(self, page, chat_messages):
        last = chat_messages[-1]
        if last["role"] == "assistant" and last["message"].endswith("?"):
            return 0.0, False, "Read the heading.", {}
        is_said = last["role"] == "assistant" and len(chat_messages) > 3
        return float(is_said and last["message"] == str(self.number)), is_said, "", {}


class Tabs(PageTask):
    """Half the reward for a second page, half for the press of a button back on the first."""

    html = (
        "<button onclick=\"window.open('about:blank').document.title = 'Other'\" "
        "style='position:absolute;left:0;top:0;width:100px;height:40px'>Open</button>"
        "<button onclick='document.title=\"pressed\"' "
        "style='position:absolute;left:0;top:60px;width:100px;height:40px'>Press</button>"
    )

    def score(self, page, messages):
        pages = page.context.pages
        is_pressed = pages[0].title() == "pressed"
        self.was_open = getattr(self, "was_open", False) or len(pages) > 1
        return 0.5 * self.was_open + 0.5 * (self.was_open and is_pressed), is_pressed


class Infeasible(PageTask):
    """Right is to say that it cannot be done."""

    def score(self, page, messages):
        is_refused = messages[-1]["role"] == "infeasible"
        return float(is_refused), is_refused


class Form(PageTask):
    """What is typed, pressed, dragged and scrolled shows in the tree, in a frame too."""

    html = (
        "<textarea id=t aria-label=typed style='position:absolute;left:0;top:0;width:150px;height:50px'>"
        "</textarea>"
        "<output id=seen style='position:absolute;left:160px;top:0;width:150px;height:50px'></output>"
        "<iframe srcdoc='<body style=margin:0><button style=width:80px;height:30px>In a frame</button>"
        "<input type=checkbox checked disabled aria-label=Ticked>' "
        "style='position:absolute;left:10px;top:100px;width:200px;height:60px;border:0'></iframe>"
        "<span onclick='0' style='position:absolute;left:230px;top:100px;width:60px;height:20px'>Pressable"
        "</span>"
        "<p style='position:absolute;top:400px'>below</p>"
        "<script>const say = (text) => { seen.textContent += text + ' '; };"
        "document.onmousedown = (e) => say(`down${e.button}@${e.clientX},${e.clientY}`);"
        "document.onmouseup = (e) => say(`up@${e.clientX},${e.clientY}`);"
        "document.ondblclick = () => say('double'); document.oncontextmenu = () => false;"
        "document.onkeydown = (e) => { if (e.key.length > 1) say(e.key); };"
        "document.onwheel = (e) => say(`wheel${e.deltaX},${e.deltaY}`);</script>"
    )


class Hanging(PageTask):
    """A page that computes for ever once it is pressed."""

    html = (
        "<button onclick='for (;;);' style='position:absolute;left:0;top:0;width:99px;height:99px'>x</button>"
    )


class Broken(PageTask):
    """Cannot be set up, unless it is told to."""

    def setup(self, page):
        if not self.options.get("works"):
            raise RuntimeError("the site does not answer")
        return super().setup(page)


for task in (Question, Tabs, Infeasible, Form, Hanging, Broken):
    register_task(f"local.{task.__name__.lower()}", task)
