"""Right next actions for the MiniWoB tasks that say plainly what to do: for tests and demonstrations.

Each rule is a pattern of the utterance and a function that yields what is still to be done, read from the
elements alone; the first of it is the next action.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from vlrl.envs.gui.actions import Action, Click, Key, TypeText
from vlrl.envs.gui.screen import Element
from vlrl.errors import NoOracle

Elements: TypeAlias = Sequence[Element]
Rule: TypeAlias = Callable[[re.Match[str], Elements], Iterator[Action]]


def next_action(goal: str, elements: Elements, num_done: int) -> Action:
    """The next action.

    Args:
        goal: the utterance.
        elements: the accessibility tree, the utterance's own texts left out.
        num_done: actions that this episode's oracle has given before: of a sequence of clicks, no element
            says which were done.

    Raises:
        NoOracle: for a task that no rule knows.
    """
    if match := re.fullmatch(r"Click button (\w+), then click button (\w+)\.", goal):
        return _click(elements, match[1 + min(num_done, 1)], "button")
    for pattern, rule in RULES.items():
        if match := re.fullmatch(pattern, goal):
            return next(rule(match, elements))
    raise NoOracle(
        f"gui/miniwob has no oracle for a task that says {goal!r}; see docs/gui_web.md for those with one"
    )


def _click(elements: Elements, name: str, *roles: str) -> Click:
    found = [e for e in elements if e.name.lower() == name.lower() and (not roles or e.role in roles)]
    exact = [e for e in found if e.name == name] or found
    if not exact:
        raise NoOracle(f"gui/miniwob's oracle sees no {' or '.join(roles) or 'element'} called {name!r}")
    return _at(exact[-1], elements)


def _at(element: Element, elements: Elements = ()) -> Click:
    """The place nearest to its middle that no other control shares: pages lay some on top of others."""
    others = [e.box for e in elements if e is not element and e.role in ("button", "textbox")]
    x0, y0, x1, y1 = element.box
    places = [
        (x0 + (x1 - x0) * column // 8, y0 + (y1 - y0) * row // 8)
        for column in (4, 3, 5, 2, 6, 1, 7)
        for row in (4, 3, 5, 2, 6, 1, 7)
    ]
    free = (
        (x, y)
        for x, y in places
        if not any(left <= x < right and top <= y < bottom for left, top, right, bottom in others)
    )
    return Click(next(free, places[0]))


def _fill(field: Element, text: str) -> Iterator[Action]:
    if field.value == text:
        return
    if "focused" not in field.states:
        yield _at(field)
    elif field.value:
        yield Key(("ctrl", "a"))  # and the next action is typed over it
    yield TypeText(text)


def _fields(elements: Elements, *roles: str) -> list[Element]:
    return [e for e in elements if e.role in (roles or ("textbox",))]


def _submit(elements: Elements) -> Click:
    names = ("submit", "login", "search")
    return _at(next(e for e in elements if e.role == "button" and e.name.lower() in names))


def _only_button(match: re.Match[str], elements: Elements) -> Iterator[Action]:
    yield _at(_fields(elements, "button")[0])


def _button(match: re.Match[str], elements: Elements) -> Iterator[Action]:
    yield _click(elements, "Close" if match[1] == "x" else match[1], "button")


def _link(match: re.Match[str], elements: Elements) -> Iterator[Action]:
    yield _click(elements, match[1], "text", "link")


def _tab(match: re.Match[str], elements: Elements) -> Iterator[Action]:
    yield _click(elements, match[1], "tab")


def _close(match: re.Match[str], elements: Elements) -> Iterator[Action]:
    yield _click(elements, "Close", "button")


def _boxes(match: re.Match[str], elements: Elements) -> Iterator[Action]:
    wanted = set() if match[1] == "nothing" else set(match[1].split(", "))
    for box in _fields(elements, "checkbox", "radio"):
        if (box.name in wanted) != ("checked" in box.states):
            yield _at(box)
    yield _submit(elements)


def _choose(match: re.Match[str], elements: Elements) -> Iterator[Action]:
    options = {e.name: e for e in elements if e.role == "option"}
    combo = _fields(elements, "combobox")[0]
    if combo.value != match[1]:
        if match[1] in options and options[match[1]].box[3] - options[match[1]].box[1] > 2:
            yield _at(options[match[1]])
        yield _at(combo)
    yield _submit(elements)


def _enter(match: re.Match[str], elements: Elements) -> Iterator[Action]:
    for field in _fields(elements):
        yield from _fill(field, match[1])
    yield _submit(elements)


def _enter_case(match: re.Match[str], elements: Elements) -> Iterator[Action]:
    text = match[1].upper() if match[2] == "upper" else match[1].lower()
    yield from _fill(_fields(elements)[0], text)
    yield _submit(elements)


def _login(match: re.Match[str], elements: Elements) -> Iterator[Action]:
    for field, text in zip(_fields(elements), match.groups(), strict=False):
        yield from _fill(field, text)
    yield _submit(elements)


def _focus(match: re.Match[str], elements: Elements) -> Iterator[Action]:
    number = int(match[1] or 1) if match.lastindex else 1
    yield _at(_fields(elements)[number - 1])


def _add(match: re.Match[str], elements: Elements) -> Iterator[Action]:
    sums = (re.fullmatch(r"(-?\d+) ([+x×-]) (-?\d+) =", e.name) for e in elements)
    left, sign, right = next(found for found in sums if found).groups()
    values = {"+": int(left) + int(right), "-": int(left) - int(right)}
    yield from _fill(_fields(elements)[0], str(values.get(sign, int(left) * int(right))))
    yield _submit(elements)


def _read_table(match: re.Match[str], elements: Elements) -> Iterator[Action]:
    cells = [e.name for e in elements if e.role == "cell"]
    table: Mapping[str, str] = dict(zip(cells[::2], cells[1::2], strict=False))
    yield from _fill(_fields(elements)[0], table[match[1]])
    yield _submit(elements)


def _find_word(match: re.Match[str], elements: Elements) -> Iterator[Action]:
    words = next(e.name for e in elements if e.role == "paragraph").split()
    yield from _fill(_fields(elements)[0], words[int(match[1]) - 1].strip(",.?!"))
    yield _submit(elements)


def _date(match: re.Match[str], elements: Elements) -> Iterator[Action]:
    month, day, year = match.groups()
    field = _fields(elements)[0]
    if field.value != f"{year}-{month}-{day}":
        x0, y0, _, y1 = field.box
        if "focused" not in field.states:
            yield Click((x0 + 20, (y0 + y1) // 2))  # on the month
        yield TypeText(f"{month}{day}{year}")
    yield _submit(elements)


def _time(match: re.Match[str], elements: Elements) -> Iterator[Action]:
    hour, minute, half = int(match[1]), match[2], match[3]
    field = _fields(elements)[0]
    if field.value != f"{hour % 12 + (12 if half == 'PM' else 0):02}:{minute}":
        x0, y0, _, y1 = field.box
        if "focused" not in field.states:
            yield Click((x0 + 16, (y0 + y1) // 2))  # on the hour
        yield TypeText(f"{hour:02}{minute}{half[0]}")
    yield _submit(elements)


RULES: Mapping[str, Rule] = {
    r"Click the button\.": _only_button,
    r"Click button (\w+)\.": _button,
    r'Click on the "(.+)" button\.': _button,
    r'Click the button in the dialog box labeled "(.+)"\.': _button,
    r'Close the dialog box by clicking the "x"\.': _close,
    r'Click on the link "(.+)"\.': _link,
    r"Click on (Tab #\d+)\.": _tab,
    r"Select (.+) from the list and click Submit\.": _choose,
    r"Select (.+) and click Submit\.": _boxes,
    r'Enter "(.+)" into the text field and press Submit\.': _enter,
    r'Type "(.+)" in all (upper|lower) case letters in the text input and press Submit\.': _enter_case,
    r'Enter the password "(.+)" into both text fields and press submit\.': _enter,
    r'Enter the username "(.+)" and the password "(.+)" into the text fields and press login\.': _login,
    r"Focus into the textbox\.": _focus,
    r"Focus into the (\d+)\w\w input textbox\.": _focus,
    r"Solve the math problem and type your answer into the textbox\. Press submit when done\.": _add,
    r"Enter the value of (.+) into the text field and press Submit\.": _read_table,
    r'Find the (\d+)\w\w word in the paragraph, type that into the textbox and press "Submit"\.': _find_word,
    r"Enter (\d\d)/(\d\d)/(\d{4}) as the date and hit submit\.": _date,
    r"Enter (\d+):(\d\d) ([AP]M) as the time and press submit\.": _time,
}
