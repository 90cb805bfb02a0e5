"""No text that a model may write becomes anything but an action or an ActionError, whatever its length."""

from __future__ import annotations

import random
import string
import warnings
from collections.abc import Callable, Iterator

import pytest
from codec_samples import SAMPLES, VIEW

from vlrl.coordinates import Canvas
from vlrl.envs.gui.actions import KEY_NAMES, Action, Key, KeyDown, KeyUp, Scroll, points_of
from vlrl.envs.gui.codecs.codec import ActionError, Codec, View
from vlrl.envs.gui.codecs.grammar.parsed_call import MAX_SCROLL_PX, MAX_TEXT, MAX_WAIT_S
from vlrl.envs.gui.codecs.open import CODECS, open_codec
from vlrl.seeds import derive_seed

KINDS = {"no_action", "syntax", "unknown_action", "missing_argument", "bad_argument", "outside"}
VIEWS = [
    VIEW,
    View(Canvas((210, 160), (336, 252), "per_1000"), (0, 0)),
    View(Canvas((7, 9), (800, 8)), (8, 6)),
]

EVIL = [
    "__import__('os').system('touch /tmp/vlrl_was_here')",
    "().__class__.__mro__[1].__subclasses__()",
    "[x for x in range(10**9)]",
    "lambda: 0",
    "f'{1+1}'",
    "9" * 5000,
    "-" * 1000 + "1",
    "1e999",
    "NaN",
    "-Infinity",
    "10**400",
    "0x" + "f" * 300,
    "(" * 5000,
    "[" * 3000 + "]" * 3000,
    "{'a':" * 1000,
    '{"a":' * 1000,
    "\0",
    "\ud800",
    "\u2028\u0085",
    "'" * 999,
    '"""',
    "\\",
    "\\u00",
    "\\N{BULLET}",
    "``````",
    "</think>",
    "<think>",
    "\nAction: ",
    "<tool_call>" * 40,
    "<|box_start|>",
    "b'bytes'",
    "1j",
    "True",
    "null",
    "*args, **kwargs",
    "x=1, x=2",
]


def check(codec: Codec, text: str, view: View) -> str:
    """Parse and name the outcome; anything but an action that can be done or a typed error fails."""
    try:
        action = codec.parse(text, view)
    except ActionError as error:
        start, end = error.span
        assert error.kind in KINDS and 0 <= start <= end <= len(text), (codec.name, text[:200], error.span)
        assert len(str(error)) < 500
        return error.kind
    check_action(action, view)
    return type(action).__name__


def check_action(action: Action, view: View) -> None:
    assert isinstance(action, Action)
    width, height = view.screen
    assert all(0 <= x < width and 0 <= y < height for x, y in points_of(action))
    assert all(type(n) is int for point in points_of(action) for n in point)
    if isinstance(action, Key):
        assert action.keys and set(action.keys) <= KEY_NAMES
    if isinstance(action, KeyDown | KeyUp):
        assert action.key in KEY_NAMES
    if isinstance(action, Scroll):
        assert max(abs(action.dx), abs(action.dy)) <= MAX_SCROLL_PX
    assert 0 <= getattr(action, "duration_ms", 0) <= MAX_WAIT_S * 1000
    text = getattr(action, "text", "")
    assert len(text) <= MAX_TEXT
    text.encode()


def written(codec: Codec) -> list[str]:
    """What the codec itself writes: texts to spoil."""
    texts = []
    for action in SAMPLES:
        try:
            texts.append(codec.format(action, VIEW))
        except ActionError:
            continue
    return texts


def fuzz(rng: random.Random, seeds: list[str], others: list[str]) -> str:
    """A text that is nearly an action, or nothing like one."""
    text = rng.choice(seeds if rng.random() < 0.9 else others)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3, 8))):
        at, to = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        piece = rng.choice(MUTATIONS)(rng)
        match rng.randrange(6):
            case 0:
                text = text[:at] + piece + text[at:]
            case 1:
                text = text[:at] + piece + text[min(to, at + 3) :]
            case 2:
                text = text[:at] + text[to:]
            case 3:
                text = text[:to] + text[at:]
            case 4:
                other = rng.choice(seeds)
                text = text[:at] + other[rng.randrange(len(other) + 1) :]
            case 5:
                text = text.replace(rng.choice(string.digits), piece[:40], 1)
        text = text[:4000]
    return text


MUTATIONS: list[Callable[[random.Random], str]] = [
    lambda rng: rng.choice(EVIL)[:400],
    lambda rng: rng.choice(string.printable) * rng.choice((1, 1, 1, 2, 50)),
    lambda rng: chr(rng.randrange(0x110000)),
    lambda rng: str(rng.choice((-1, 0, 5, 643, 999, 1000, 1001, 10**6, 10**30, 0.5, -0.0))),
    lambda rng: rng.choice("()[]{}<>,;:=+-'\"`\\ \n"),
]


def fuzzed(number: int) -> dict[str, int]:
    """How many of the outcomes there were in so many texts over all codecs."""
    rng = random.Random(derive_seed(0, "codecs"))
    codecs = [open_codec(name) for name in CODECS]
    texts = [written(codec) for codec in codecs]
    others = [text for some in texts for text in some] + EVIL
    outcomes: dict[str, int] = {}
    for count in range(number):
        which = count % len(codecs)
        outcome = check(codecs[which], fuzz(rng, texts[which], others), rng.choice(VIEWS))
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    return outcomes


@pytest.mark.slow
def test_a_hundred_thousand_spoilt_texts() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Python's parser must not talk of a model's backslashes
        outcomes = fuzzed(100_000)
    assert sum(outcomes.values()) == 100_000
    assert set(outcomes) >= KINDS  # the texts reach every kind of error,
    assert len(set(outcomes) - KINDS) >= 15  # and many are still actions


@pytest.mark.parametrize("name", CODECS)
def test_evil_in_every_place_of_every_action(name: str) -> None:
    """Each hostile piece alone, in the place of each number and of each quoted text."""
    codec = open_codec(name)
    for piece in EVIL:
        check(codec, piece, VIEW)
        for text in written(codec)[:30]:
            for spoilt in places(text, piece):
                check(codec, spoilt, VIEW)


def places(text: str, piece: str) -> Iterator[str]:
    for mark in ("1", "2", "5", "(", ")", "'", '"', ","):
        at = text.find(mark)
        if at >= 0:
            yield text[:at] + piece + text[at:]
            yield text[:at] + piece + text[at + 1 :]
            yield text.replace(mark, piece)[:20_000]


LONG = 100_000
LONG_TEXTS = {
    "noise": "x" * LONG,
    "blanks": " " * LONG,
    "lines": "\n" * LONG,
    "brackets": "(" * LONG,
    "lists": "[" * LONG,
    "objects": '{"a":' * (LONG // 5),
    "quotes": "'" * LONG,
    "other quotes": "\"'" * (LONG // 2),
    "triple quotes": "'''\"\"\"" * (LONG // 6),
    "backslashes": "\\" * LONG,
    "fences": "```" * (LONG // 3),
    "labels": "Action: \n" * (LONG // 9),
    "blank lines and labels": " \t" * (LONG // 2) + "Action:",
    "calls": "<tool_call>" * (LONG // 11),
    "tags": "<action></action>" * (LONG // 17),
    "thoughts": "<think></think>" * (LONG // 15),
    "imports": "import time;" * (LONG // 12),
    "comments": "#" * LONG,
    "commas": "click(" + "1," * (LONG // 2) + ")",
    "words": "<action>click " + "1 " * (LONG // 2) + "</action>",
    "digits": "<action>click " + "1" * LONG + " 1</action>",
    "pluses": "<action>key " + "a+" * (LONG // 2) + "</action>",
    "quoted commas": "Action: type(content='" + "', a" * (LONG // 4) + "')",
    "quoted equals": "Action: type(content='" + "', a=" * (LONG // 5) + "')",
    "quoted blanks": "Action: type(content='" + "' " * (LONG // 2) + "')",
    "a long name": "a" * LONG + "()",
    "a dotted name": "a." * (LONG // 2) + "a()",
    "keys of an object": "{" + ",".join(f'"{n}": 1' for n in range(LONG // 10)) + "}",
    "a key": '{"action_type": "NONE", "' + "k" * LONG + '": 1}',
    "digits in JSON": '{"action_type": "CLICK", "x": ' + "1" * LONG + ', "y": 1}',
    "a Python list": "<answer>[" + "1," * (LONG // 2) + "]</answer>",
    "a call's list": "pyautogui.hotkey(" + "[" * LONG + ")",
    "a long text": 'pyautogui.write("' + "a" * LONG + '")',
}


@pytest.mark.parametrize("shape", LONG_TEXTS)
def test_a_hundred_kilobytes(shape: str) -> None:
    """How long it takes, benchmarks/gui_codecs.py measures."""
    text = LONG_TEXTS[shape]
    for name in CODECS:
        codec = open_codec(name)
        for wrapped in (text, f"<tool_call>{text}</tool_call>", f"<answer>{text}</answer>"):
            check(codec, wrapped, VIEW)


def test_nothing_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither eval nor exec nor an import is reached, and no attribute of what a text names is looked up."""

    def refused(*arguments: object, **named: object) -> None:
        raise AssertionError(f"reached with {arguments!r:.100}")

    monkeypatch.setattr("builtins.eval", refused)
    monkeypatch.setattr("builtins.exec", refused)
    monkeypatch.setattr("os.system", refused)
    for name in CODECS:
        codec = open_codec(name)
        for piece in EVIL[:6]:
            for text in (piece, f"pyautogui.click({piece}, 1)", f"noop({piece})", f"Action: wait({piece})"):
                assert check(codec, text, VIEW) in KINDS
            check(codec, f"<answer>[{{'action': 'click', 'point': {piece}}}]</answer>", VIEW)
