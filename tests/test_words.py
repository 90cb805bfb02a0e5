"""The vocabulary: one word for one thing, the one that the field uses, and one class for one public name."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent

NOT = {
    r"anew": "again",
    r"mend(ed|s|ing)?": "fix",
    r"for want of": "for lack of",
    r"puts? up with": "tolerates",
    r"of no meaning to": "has no effect with",
    r"is no number": "is not a number",
    r"set out from": "started from",
    r"\w*(?i:obituar(y|ies))\w*": "death message",
    r"_?Trouble": "Failure",
    r"redrawn?": "generated again",
    r"redrawn_requests": "resubmitted_requests",
    r"lag_mean|version_lags|lag_sums": "staleness",
    r"async_options|async_\.": "asynchronous",
    r"draw_wave|whole_waves|mode=waves": "batch",
    r"each_aside|written_aside|run\.aside": "written_atomically, run.run_blocking",
    r"num_drawn_tokens": "num_generated_tokens",
    r"Said(?=[\[(\],])|said_of": "MediaMessage, ParsedAction",
    r"make_setting|class Setting|rollout\.setting": "RolloutContext",
    r"class Balance": "Router",
    r"letting_go": "release",
    r"Stock": "EnvPool",
    r"one_adapter": "lora_products",
    r"cpu_products": "cpu_matmul",
    r"told of|\w+_told_of\w*": "reported",
    r"without a word|in silence": "without a message, silently",
    r"[Ww]hat (became|becomes|came|comes) of": "the outcome of, the result of",
    r"[Ww]ho did what|[Ll]ooks? after": "spans of time by lane, monitors",
    r"the one (and|or) (raise|lower) the other": "both keys",
    r"VectorHub|HubOptions|take_seat": "VectorServer, ServerOptions, take_slot",
    r"class (Hands|Eye|Seats?)": "BrowserInput, Locator, HoldableEnv",
    r"\w*[Pp]icture\w*": "image",
}
"""Words that are not used → what is written instead."""


def whole(word: str) -> str:
    """The pattern of a word that is no part of a longer one."""
    return rf"(?<![\w.-])(?:{word})(?![\w-])"


ANY = re.compile(whole("|".join(NOT)))
"""Any of them, for a file that has none."""

# What models and users of the desktops are shown says picture, as people do.
PICTURES = (
    *("envs/visual/", "envs/gui/emu/", "envs/gui/x11/tasks/", "docs/gui_x11.md"),
    *(
        "tests/envs/visual/",
        "tests/envs/gui/emu/",
        "tests/helpers/gallery.py",
        "benchmarks/data_check.py",
        "benchmarks/text_rewards.py",
    ),
)
# A word of another library, of another sense, or the former name that a message explains.
ALLOWED = {"vlrl/config/names.py", "tests/test_words.py", "tests/config/test_config.py"}

PREPOSITION = re.compile(
    r"(about|above|across|after|against|along|among|around|as|at|before|behind|below|beneath|beside|besides|"
    r"between|beyond|by|despite|during|except|for|from|in|inside|into|of|on|onto|out|outside|over|past|per|"
    r"since|than|through|throughout|to|towards?|under|until|unlike|up|upon|via|with|within|without)\W*",
    re.IGNORECASE,
)
"""First word that a docstring does not have: it begins with its noun or its verb."""
MAYBE = re.compile(rf"^\s*[rR]?[\"']+\s*{PREPOSITION.pattern}(?!\w)", re.IGNORECASE | re.MULTILINE)
"""What a file with such a docstring has on a line: any other is not parsed, which takes seconds for all."""


def sources() -> Iterator[tuple[str, str]]:
    """(path, text) of everything that is written here for people to read."""
    for folder in (
        "vlrl",
        "processors",
        "rewards",
        "envs",
        "tests",
        "benchmarks",
        "tools",
        "deploy",
        "examples",
        "docs",
    ):
        for file in sorted((ROOT / folder).rglob("*")):
            name = str(file.relative_to(ROOT))
            if file.suffix in (".py", ".md") and name not in ALLOWED:
                yield name, file.read_text(encoding="utf-8")
    for file in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "configs").glob("*.yaml"))):
        yield str(file.relative_to(ROOT)), file.read_text(encoding="utf-8")


def banned(text: str, name: str = "") -> list[str]:
    if not ANY.search(text):
        return []
    return [
        f"{match[0]!r}: write {better}"
        for word, better in NOT.items()
        if not (better == "image" and name.startswith(PICTURES))
        for match in re.finditer(whole(word), text)
    ]


def test_no_private_words() -> None:
    found = [f"{name}: {problem}" for name, text in sources() for problem in banned(text, name)]
    assert not found, "\n".join(found)


def test_this_test_sees_words() -> None:
    assert banned("Start anew.\nself.version_lags") == ["'anew': write again"]
    assert banned("x = version_lags") == ["'version_lags': write staleness"]
    assert banned("class Eye(NamedTuple):\n\n# dropped in silence") == [
        "'in silence': write without a message, silently",
        "'class Eye': write BrowserInput, Locator, HoldableEnv",
    ]
    assert banned("amendment, flags, gate, class Eyes") == []


def prepositions_first(text: str) -> list[str]:
    """Line, name and first line of each docstring that starts with a preposition."""
    if not MAYBE.search(text):
        return []
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (ast.get_docstring(node) or "").splitlines()
            words = lines[0].split() if lines else []
            if words and PREPOSITION.fullmatch(words[0]):
                line, name = getattr(node, "lineno", 1), getattr(node, "name", "module")
                found.append(f"{line} {name}: {lines[0]}")
    return found


def test_no_docstring_starts_with_a_preposition() -> None:
    found = [
        f"{name}:{problem}"
        for name, text in sources()
        if name.endswith(".py")
        for problem in prepositions_first(text)
    ]
    assert not found, "begin with the noun or the verb:\n" + "\n".join(found)


def test_this_test_sees_prepositions() -> None:
    fault = 'class A:\n    """Of no tokens."""\n\n    def f(self) -> None:\n        """As: JSON."""\n'
    assert prepositions_first(fault) == ["1 A: Of no tokens.", "4 f: As: JSON."]
    assert prepositions_first('"""With one tab."""\n') == ["1 module: With one tab."]
    assert prepositions_first('"""Start with one tab."""\nx = "Of no tokens"\n') == []


def public_classes() -> dict[str, list[str]]:
    found = defaultdict(list)
    for name, text in sources():
        is_package = name.startswith(("processors/", "rewards/", "envs/")) or (
            name.startswith("vlrl/") and not name.startswith(("vlrl/processors", "vlrl/rewards", "vlrl/envs"))
        )
        # The apps and widgets of the emulated desktop have the names of what they imitate.
        if not is_package or not name.endswith(".py") or name.startswith("envs/gui/emu/"):
            continue
        if "/program/" not in name:
            for node in ast.parse(text).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(name)
    return found


def test_one_public_class_name_is_one_class() -> None:
    twice = {name: files for name, files in public_classes().items() if len(files) > 1}
    assert not twice, f"rename all but one: {twice}"
