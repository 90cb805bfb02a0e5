"""The layouts that people's records have, each turned into the same conversation.

A shape takes a record's fields and pops what it uses; what is left becomes metadata. It returns `messages`
(content is text, or a list of parts) and, as far as the record has them, `images` and `videos` (to be put
where the text says <image> and <video>) and the fields of KEPT. What it raises is reported with the place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from vlrl.errors import DataError

Fields: TypeAlias = dict[str, Any]
Shape: TypeAlias = Callable[[Fields], dict[str, Any]]

KEPT = ("id", "answer", "target", "rejected", "env", "tools", "task", "metadata")
"""Taken by every shape from the column of the same name."""

COLUMNS = frozenset(
    {
        *KEPT,
        "prompt",
        "completion",
        "chosen",
        "label",
        "messages",
        "conversations",
        "problem",
        "solution",
        "system",
        "image",
        "images",
        "video",
        "videos",
    }
)
"""What the built-in shapes look for; the left side of a `columns` mapping."""

ROLES = {"human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "system": "system"}
"""Speakers of a `conversations` column → roles."""

ANSWER_TAGS = re.compile(r"\s*<answer>\s*(.*?)\s*</answer>\s*", re.DOTALL)


def detect_shape(fields: Mapping[str, Any], place: str) -> str:
    """The name of the shape that a record's columns fit.

    Raises:
        DataError: naming the columns, if they fit none.
    """
    if {"chosen", "rejected"} <= fields.keys() or (
        {"prompt", "completion"} <= fields.keys() and isinstance(fields.get("label"), bool)
    ):
        return "preference"
    if "messages" in fields:
        return "vlrl"
    if "conversations" in fields:
        return "llava"
    if "prompt" in fields:
        return "trl"
    if "problem" in fields:
        return "vlm_r1" if "solution" in fields else "easy_r1"
    seen = ", ".join(map(repr, fields)) or "none"
    raise DataError(
        f"{place}: its columns ({seen}) fit no known shape: messages (vlrl, openai), conversations (llava), "
        "prompt (trl), chosen and rejected (preference), problem with solution (vlm_r1) or with answer "
        "(easy_r1); `columns` says which column is which, for instance columns: {problem: question, "
        "image: photo}"
    )


def from_messages(fields: Fields) -> dict[str, Any]:
    """`messages` of role and content, parts as vlrl or OpenAI's chat API write them."""
    messages = [_message(message) for message in _items(fields.pop("messages"), "messages")]
    row = _kept(fields)
    if "target" in row and isinstance(fields.get("label"), bool):
        row["label"] = fields.pop("label")
    return {**row, "messages": messages}


def from_conversations(fields: Fields) -> dict[str, Any]:
    """LLaVA: `conversations` of from and value, and `image`."""
    system = fields.pop("system", None)
    messages = [{"role": "system", "content": system}] if system else []
    for turn in _items(fields.pop("conversations"), "conversations"):
        speaker, text = turn.get("from", turn.get("role")), turn.get("value", turn.get("content"))
        if speaker not in ROLES or not isinstance(text, str):
            raise ValueError(
                f"a turn of 'conversations' needs 'from' (one of {', '.join(ROLES)}) and a text 'value', "
                f"not {speaker!r} and {type(text).__name__}"
            )
        messages.append({"role": ROLES[speaker], "content": text})
    return {**_kept(fields), "messages": messages}


def from_problem(fields: Fields) -> dict[str, Any]:
    """EasyR1: `problem`, `answer`, `images` or `videos`; also any plain table whose columns are mapped."""
    system, problem = fields.pop("system", None), fields.pop("problem")
    if not isinstance(problem, str):
        raise ValueError(f"'problem' must be text, not {type(problem).__name__}")
    messages = [{"role": "system", "content": system}] if system else []
    return {**_kept(fields), "messages": [*messages, {"role": "user", "content": problem}]}


def from_vlm_r1(fields: Fields) -> dict[str, Any]:
    """VLM-R1, R1-V: `problem` and `solution`, or LLaVA's conversations whose last turn is the solution.

    As their loaders have it, a solution is text, also in answer tags, or boxes as JSON; it is the answer to
    score against, not a target to imitate (shape llava makes it one).
    """
    solution = fields.pop("solution", None)
    if "conversations" in fields:
        turns = _items(fields["conversations"], "conversations")
        last = turns[-1] if turns else {}
        if ROLES.get(str(last.get("from", last.get("role")))) == "assistant":
            turns.pop()
            solution = last.get("value", last.get("content")) if solution is None else solution
        fields["conversations"] = turns
    row = from_conversations(fields) if "conversations" in fields else from_problem(fields)
    return row if solution is None else {**row, "answer": _untagged(solution)}


def from_trl(fields: Fields) -> dict[str, Any]:
    """TRL: `prompt` and `completion`, each text or messages; `image(s)`; `answer` or `solution` for rewards.

    A completion ends with the assistant's turn, which is the target, and the answer where no column is.
    """
    system = fields.pop("system", None)
    turns = _turns(fields.pop("prompt"), "user", "prompt")
    turns += _turns(fields.pop("completion", []), "assistant", "completion")
    row = _kept(fields)
    if "answer" not in row and "solution" in fields:
        row["answer"] = _untagged(fields.pop("solution"))
    return {**row, "messages": [*([{"role": "system", "content": system}] if system else []), *turns]}


def from_preference(fields: Fields) -> dict[str, Any]:
    """TRL's preferences: `chosen` and `rejected`, or `completion` and its `label`, each text or messages.

    `prompt` is text or messages too. Without it, it is what chosen and rejected begin with: their first
    messages, or the words that both texts share. The chosen completion, or the labelled one, is the target.
    """
    system = fields.pop("system", None)
    turns = [{"role": "system", "content": system}] if system else []
    prompt = _turns(fields.pop("prompt"), "user", "prompt") if "prompt" in fields else []
    row: dict[str, Any] = {}
    if "completion" in fields:
        label = fields.pop("label")
        if label not in (True, False):
            raise ValueError(f"'label' must be true or false, not {label!r}")
        row["label"] = bool(label)
        *more, target = _turns(fields.pop("completion"), "assistant", "completion")
        prompt += more
    else:
        chosen, rejected = fields.pop("chosen"), fields.pop("rejected")
        if isinstance(chosen, str) != isinstance(rejected, str):
            raise TypeError("'chosen' and 'rejected' must both be text, or both messages")
        if isinstance(chosen, str) and not prompt:
            start = _shared_words(chosen, rejected)
            prompt = _turns(chosen[:start].rstrip(), "user", "chosen")
            chosen, rejected = chosen[start:], rejected[start:]
        sides = [_turns(s, "assistant", c) for s, c in ((chosen, "chosen"), (rejected, "rejected"))]
        prompt, target, other = _pair(prompt, *sides)
        row["rejected"] = _spoken_by_assistant(other)
    row["target"] = _spoken_by_assistant(target)
    return {**_kept(fields), **row, "messages": [*turns, *prompt]}


Message: TypeAlias = dict[str, Any]


def _pair(
    prompt: list[Message], chosen: list[Message], rejected: list[Message]
) -> tuple[list[Message], Message, Message]:
    """The prompt, and the message in which each side goes on from it."""
    if chosen[0]["role"] != "assistant":  # whole conversations
        same = [a == b for a, b in zip(chosen[:-1], rejected[:-1], strict=False)]
        num_shared = same.index(False) if False in same else len(same)
        shared, chosen, rejected = chosen[:num_shared], chosen[num_shared:], rejected[num_shared:]
        if prompt and prompt[-1]["content"] not in [message["content"] for message in shared]:
            raise ValueError("'chosen' and 'rejected' are conversations that do not hold the 'prompt'")
        prompt = shared
    if len(chosen) != 1 or len(rejected) != 1:
        raise ValueError(
            "'chosen' and 'rejected' must differ in the assistant's last message alone; they differ in "
            f"{len(chosen)} and {len(rejected)} messages"
        )
    return prompt, chosen[0], rejected[0]


def _shared_words(first: str, second: str) -> int:
    """Characters of the whole words with which both texts begin.

    Raises:
        ValueError: if there are none.
    """
    differ = (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    length = next(differ, min(len(first), len(second)))
    while length and not first[length - 1].isspace():
        length -= 1
    if not first[:length].strip():
        raise ValueError("without a 'prompt', 'chosen' and 'rejected' must begin with it")
    return length


def _spoken_by_assistant(message: Mapping[str, Any]) -> str:
    """The text of an assistant's message."""
    content = message["content"]
    if message["role"] != "assistant":
        raise ValueError(f"a completion must be an assistant's message, not one of {message['role']!r}")
    if not isinstance(content, str) and any(part["type"] != "text" for part in content):
        raise ValueError("a completion holds media; only text can be trained on")
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _turns(value: Any, role: str, column: str) -> list[dict[str, Any]]:
    """Text as one turn of `role`, messages as they are."""
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    return [_message(message) for message in _items(value, column)]


def _untagged(solution: Any) -> Any:
    """A solution without the answer tags around its text."""
    match = ANSWER_TAGS.fullmatch(solution) if isinstance(solution, str) else None
    return match[1] if match else solution


def _kept(fields: Fields) -> dict[str, Any]:
    """The columns that mean the same everywhere, and the media as two lists."""
    row = {name: fields.pop(name) for name in KEPT if name in fields}
    if "tools" in row:
        row["tools"] = _items(row["tools"], "tools")
    for kind in ("image", "video"):
        media = [fields.pop(name) for name in (kind, f"{kind}s") if name in fields]
        row[f"{kind}s"] = [
            item for value in media for item in (value if isinstance(value, list) else [value])
        ]
    return row


def _items(value: Any, column: str) -> list[dict[str, Any]]:
    """A column that is a list of objects, or JSON text of one, without the nulls that tables fill in."""
    if isinstance(value, str):
        value = json.loads(value)
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise TypeError(f"{column!r} must be a list of objects")
    return [_without_nulls(item) for item in value]


def _without_nulls(item: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if value is not None}


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    role, content = message["role"], message["content"]
    if not isinstance(role, str):
        raise TypeError(f"'role' must be text, not {type(role).__name__}")
    if not isinstance(content, str):
        content = [_part(part) for part in _items(content, "content")]
    return {**message, "content": content}


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    """A content part in vlrl's form."""
    kind = part["type"]
    if kind in ("image_url", "video_url"):
        url = part[kind]
        medium = kind.removesuffix("_url")
        return {"type": medium, medium: url["url"] if isinstance(url, Mapping) else url}
    if kind not in ("text", "image", "video"):
        raise ValueError(f"part type {kind!r} is not one of text, image, video, image_url, video_url")
    if kind == "text" and not isinstance(part["text"], str):
        raise TypeError(f"'text' of a part must be text, not {type(part['text']).__name__}")
    return dict(part)
