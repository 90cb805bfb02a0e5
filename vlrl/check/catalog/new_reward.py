"""`vlrl reward new`: a reward that works as it stands, and a test that it passes."""

from __future__ import annotations

import keyword
import shlex
from pathlib import Path

from vlrl.errors import ConfigError

_HEAD = '''"""A reward for vlrl: {name}. Say here what it is for."""

from __future__ import annotations

{imports}
from vlrl.rewards import reward
from vlrl.parsing.extract import extract_answer

'''

_BODY = '''
    """1 if the answer in the tags is the sample's, upper and lower case apart, else 0.

    Range {0, 1}. Completions out of the form <think>…</think><answer>…</answer> score 0: so do an empty one,
    several answers at once and an answer repeated.

    By name, as further arguments, it may ask for any key of the row's metadata, and for prompt, media,
    canvases, sample, trajectory, turns, completion_ids, num_tokens, step. Arguments with a default are
    options that a config sets.

    Raises:
        ValueError: if the sample has no answer: that is the data's fault, and no reason to score 0.
    """
'''

_SINGLE = """
@reward(range=(0.0, 1.0))
{define} {name}(completion: str, answer: Any, *, ignore_case: bool = True) -> float:{body}{wait}
    if not isinstance(answer, str) or not answer.strip():
        raise ValueError(f"the answer is {{answer!r}}; give a text")
    said = extract_answer(completion)
    if said is None:
        return 0.0
    if ignore_case:
        return float(said.casefold() == answer.strip().casefold())
    return float(said == answer.strip())
"""

_BATCHED = """
@reward(range=(0.0, 1.0), batched=True, batch_size=64)
{define} {name}(
    completions: Sequence[str],
    answers: Sequence[Any],
    *,
    ignore_case: bool = True,
) -> list[float]:{body}{wait}
    pairs = zip(completions, answers, strict=True)
    return [_one(completion, answer, ignore_case) for completion, answer in pairs]


def _one(completion: str, answer: Any, ignore_case: bool) -> float:
    if not isinstance(answer, str) or not answer.strip():
        raise ValueError(f"the answer is {{answer!r}}; give a text")
    said = extract_answer(completion)
    if said is None:
        return 0.0
    if ignore_case:
        return float(said.casefold() == answer.strip().casefold())
    return float(said == answer.strip())
"""

_WAIT = "\n    await asyncio.sleep(0)  # here it would wait for a server"

_TEST = '''"""Tests of {name}: run them with pytest."""

from __future__ import annotations

{imports}
import pytest

from {name} import {name}


def score(completion: str, answer: Any, **options: Any) -> float:
    """One completion's score."""
    {call}


def said(text: str) -> str:
    """A completion that answers so."""
    return f"<think>Let me see.</think><answer>{{text}}</answer>"


def test_the_right_answer_scores() -> None:
    assert score(said("Cat"), "cat") == 1.0
    assert score(said("Cat"), "cat", ignore_case=False) == 0.0


@pytest.mark.parametrize(
    "completion",
    [
        "",
        "cat",
        said(""),
        said("dog"),
        said("cat, dog"),
        said("cat") * 2,
        said("cat " * 1000),
        "[" * 100_000,
    ],
)
def test_all_else_scores_nothing(completion: str) -> None:
    assert score(completion, "cat") == 0.0


@pytest.mark.parametrize("answer", [None, "", 3])
def test_a_broken_sample_is_no_zero(answer: Any) -> None:
    with pytest.raises(ValueError, match="the answer is"):
        score(said("cat"), answer)
'''


def write_new(name: str, folder: Path, *, batched: bool = False, is_async: bool = False) -> list[Path]:
    """Write NAME.py and test_NAME.py.

    Args:
        name: of the function and its file.
        folder: made if it is not there.
        batched: it takes lists.
        is_async: it is a coroutine function.

    Returns:
        the two files.

    Raises:
        ConfigError: for a name that is not a function's, or a file that is there already.
    """
    if not name.isidentifier() or keyword.iskeyword(name) or not name.isascii() or name.startswith("_"):
        raise ConfigError(f"{name!r} cannot name a function and a file; use letters, digits and _")
    files = [folder / f"{name}.py", folder / f"test_{name}.py"]
    for file in files:
        if file.exists():
            raise ConfigError(f"{file} is there already; choose another name or --dir")
    folder.mkdir(parents=True, exist_ok=True)
    imports = (["import asyncio"] if is_async else []) + (
        ["from collections.abc import Sequence"] if batched else []
    )
    define, wait = ("async def", _WAIT) if is_async else ("def", "")
    head = _HEAD.format(name=name, imports="\n".join([*imports, "from typing import Any\n"]))
    body = _BATCHED if batched else _SINGLE
    source = head + body.format(define=define, name=name, body=_BODY.rstrip("\n"), wait=wait or "")
    files[0].write_text(source, encoding="utf-8")
    files[1].write_text(_test_of(name, batched=batched, is_async=is_async), encoding="utf-8")
    return files


def next_commands(name: str, folder: Path) -> list[str]:
    """What to do with the new files, ready for a shell."""
    path = shlex.quote(str(folder / name) if folder != Path() else f"./{name}")
    test = shlex.quote(str(folder / f"test_{name}.py"))
    return [
        f"pytest {test}",
        f"vlrl reward test {path}.py:{name}",
        f"vlrl train configs/quickstart.yaml 'rewards=[{{name: {path}.py:{name}}}]'",
    ]


def _test_of(name: str, *, batched: bool, is_async: bool) -> str:
    call = (
        f"{name}([completion], [answer], **options)" if batched else f"{name}(completion, answer, **options)"
    )
    call = f"asyncio.run({call})" if is_async else call
    imports = ["import asyncio"] if is_async else []
    return _TEST.format(
        name=name,
        imports="\n".join([*imports, "from typing import Any\n"]),
        call=f"return {call}[0]" if batched else f"return {call}",
    )
