"""What variants are drawn from, and predicates that several tasks share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from vlrl.envs.gui.actions import Action, Key, OpenApp, TypeText
from vlrl.envs.gui.x11.sandbox.home import Tree
from vlrl.envs.gui.x11.task import Predicate

NOUNS = (
    *("anchor", "basket", "candle", "desert", "engine", "falcon", "garden", "harbor", "island", "jacket"),
    *("kettle", "ladder", "marble", "needle", "orchid", "pepper", "quartz", "ribbon", "saddle", "tunnel"),
    *("umbrella", "velvet", "walnut", "yogurt", "zipper", "copper", "magnet", "window", "pillow", "violin"),
)
VERBS = ("bring", "count", "paint", "repair", "collect", "sell", "wash", "store", "measure", "pack")


def draw(rng: np.random.Generator, words: Sequence[str], count: int) -> list[str]:
    """Several different ones."""
    return [words[i] for i in rng.choice(len(words), count, replace=False)]


def names(rng: np.random.Generator, count: int) -> list[str]:
    """Several different names of files or folders."""
    return [f"{noun}-{rng.integers(10, 100)}" for noun in draw(rng, NOUNS, count)]


def sentence(rng: np.random.Generator) -> str:
    """Five words and a full stop."""
    one, two = draw(rng, NOUNS, 2)
    return f"{draw(rng, VERBS, 1)[0].capitalize()} the {one} and the {two}."


def sentences(rng: np.random.Generator, count: int) -> list[str]:
    """Several of them."""
    return [sentence(rng) for _ in range(count)]


def lines(texts: Iterable[str]) -> bytes:
    """The content of a file of these lines."""
    return "".join(f"{text}\n" for text in texts).encode()


def holds(path: str, text: str) -> Predicate:
    """A file has exactly this text; whether its last line is ended does not count."""

    def check(tree: Tree) -> bool:
        return tree.get(path, b"\0").rstrip(b"\n") == text.encode().rstrip(b"\n")

    return check


def has(path: str, content: bytes | None = None) -> Predicate:
    """Something is there, with a content if one is given."""
    return lambda tree: path in tree and content in (None, tree[path])


def gone(path: str) -> Predicate:
    """Nothing is there."""
    return lambda tree: path not in tree


def keys(*chords: str) -> list[Action]:
    """Chords such as "ctrl+s"."""
    return [Key(tuple(chord.split("+"))) for chord in chords]


def in_terminal(*commands: str) -> list[Action]:
    """Start the terminal and type commands, one after the other."""
    return [OpenApp("xterm"), *(TypeText(f"{command}\n") for command in commands)]


def new_text(name: str, text: str) -> list[Action]:
    """Start the editor and save a text under a name in the home folder."""
    return [OpenApp("mousepad"), TypeText(text), *keys("ctrl+s"), TypeText(name), *keys("enter")]


def open_in_editor(path: str) -> list[Action]:
    """Start the editor and open a file by the path typed into its dialog."""
    return [OpenApp("mousepad"), *keys("ctrl+o"), TypeText(f"/home/user/{path}"), *keys("enter")]
