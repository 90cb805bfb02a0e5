"""Conversations: messages of role and content, LLaVA's turns of from and value, tables of instructions."""

from __future__ import annotations

from typing import Any

from vlrl.data.shapes.fields import Fields, Message, kept_columns, message_of, objects_of, system_of

ROLES = {"human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "system": "system"}
"""Speakers of a `conversations` column → roles."""


def from_messages(fields: Fields) -> dict[str, Any]:
    """`messages` of role and content, parts as vlrl or OpenAI's chat API write them."""
    messages = [message_of(message) for message in objects_of(fields.pop("messages"), "messages")]
    if "rejected_response" in fields:  # ms-swift's pairs: the last turn is the chosen one
        fields["rejected"] = fields.pop("rejected_response")
    row = kept_columns(fields)
    if "target" in row and isinstance(fields.get("label"), bool):
        row["label"] = fields.pop("label")
    row |= _label(fields)
    return {**row, "messages": messages}


def from_conversations(fields: Fields) -> dict[str, Any]:
    """LLaVA: `conversations` of from and value, and `image`."""
    messages = system_of(fields)
    for turn in objects_of(fields.pop("conversations"), "conversations"):
        speaker, text = turn.get("from", turn.get("role")), turn.get("value", turn.get("content"))
        if speaker not in ROLES or not isinstance(text, str):
            raise ValueError(
                f"a turn of 'conversations' needs 'from' (one of {', '.join(ROLES)}) and a text 'value', "
                f"not {speaker!r} and {type(text).__name__}"
            )
        messages.append({"role": ROLES[speaker], "content": text})
    return {**kept_columns(fields), **_label(fields), "messages": messages}


def from_swift(fields: Fields) -> dict[str, Any]:
    """ms-swift: `messages`, or `query` and `response` with `history`; `rejected_response`, or `label`."""
    if "objects" in fields:
        raise ValueError("'objects' with <ref-object> and <bbox> is not read: write names and boxes as text")
    is_answered = "messages" in fields or fields.get("response") is not None
    if is_answered and isinstance(fields.get("label"), bool):  # else it is a question's, for the rewards
        fields["kto_tag"] = fields.pop("label")
    if "messages" in fields:
        return from_messages(fields)
    return _asked_and_answered(fields, fields.pop("query"), "response", "rejected_response")


def from_instruction(fields: Fields) -> dict[str, Any]:
    """Alpaca, LLaMA-Factory: `instruction`, `input`, `output`, `history`; or `chosen` and `rejected`."""
    asked = "\n".join(text for name in ("instruction", "input") if (text := fields.pop(name, None)))
    answer = "chosen" if "chosen" in fields else "output"
    return _asked_and_answered(fields, asked, answer, "rejected")


def _asked_and_answered(fields: Fields, asked: str, answer: str, rejected: str) -> dict[str, Any]:
    """Earlier turns, a question, and the columns of its answer and of the answer that is a worse one."""
    messages = system_of(fields)
    for turn in fields.pop("history", None) or []:
        if not isinstance(turn, list | tuple) or len(turn) != 2:
            raise ValueError(f"'history' must be a list of [question, answer], not of {turn!r}")
        messages += [_said(role, text) for role, text in zip(("user", "assistant"), turn, strict=True)]
    messages.append(_said("user", asked))
    if fields.get(answer) is not None:
        messages.append(_said("assistant", fields.pop(answer)))
    worse = fields.pop(rejected, None)
    row = kept_columns(fields)
    return {**row, **({} if worse is None else {"rejected": worse}), **_label(fields), "messages": messages}


def _label(fields: Fields) -> dict[str, bool]:
    """LLaMA-Factory's `kto_tag`: whether the last turn is a good one."""
    return {"label": fields.pop("kto_tag")} if isinstance(fields.get("kto_tag"), bool) else {}


def _said(role: str, text: Any) -> Message:
    if not isinstance(text, str):
        raise TypeError(f"what {role!r} says must be text, not {type(text).__name__}")
    return {"role": role, "content": text}
