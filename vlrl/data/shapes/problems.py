"""A question and what its answer is compared with: EasyR1, VLM-R1, TRL and verl."""

from __future__ import annotations

from typing import Any

from vlrl.data.shapes.conversations import ROLES, from_conversations
from vlrl.data.shapes.fields import Fields, kept_columns, objects_of, system_of, turns_of, untagged


def from_problem(fields: Fields) -> dict[str, Any]:
    """EasyR1: `problem`, `answer`, `images` or `videos`; also any plain table whose columns are mapped."""
    messages, problem = system_of(fields), fields.pop("problem")
    if not isinstance(problem, str):
        raise ValueError(f"'problem' must be text, not {type(problem).__name__}")
    return {**kept_columns(fields), "messages": [*messages, {"role": "user", "content": problem}]}


def from_vlm_r1(fields: Fields) -> dict[str, Any]:
    """VLM-R1, R1-V: `problem` and `solution`, or LLaVA's conversations whose last turn is the solution.

    As their loaders have it, a solution is text, also in answer tags, or boxes as JSON; it is the answer to
    score against, not a target to imitate (shape llava makes it one).
    """
    solution = fields.pop("solution", None)
    if "conversations" in fields:
        turns = objects_of(fields["conversations"], "conversations")
        last = turns[-1] if turns else {}
        if ROLES.get(str(last.get("from", last.get("role")))) == "assistant":
            turns.pop()
            solution = last.get("value", last.get("content")) if solution is None else solution
        fields["conversations"] = turns
    row = from_conversations(fields) if "conversations" in fields else from_problem(fields)
    return row if solution is None else {**row, "answer": untagged(solution)}


def from_trl(fields: Fields) -> dict[str, Any]:
    """TRL: `prompt` and `completion`, each text or messages; `image(s)`; `answer` or `solution` for rewards.

    A completion ends with the assistant's turn, which is the target, and the answer where no column is.
    """
    messages = [*system_of(fields), *turns_of(fields.pop("prompt"), "user", "prompt")]
    messages += turns_of(fields.pop("completion", []), "assistant", "completion")
    row = kept_columns(fields)
    if "answer" not in row and "solution" in fields:
        row["answer"] = untagged(fields.pop("solution"))
    return {**row, "messages": messages}


def from_verl(fields: Fields) -> dict[str, Any]:
    """verl: `prompt` as messages, `images` or `videos`, `reward_model` with the ground truth.

    `data_source` and `extra_info` stay, under the names that verl's reward functions take.
    """
    truth = fields.pop("reward_model")
    if not isinstance(truth, dict) or "ground_truth" not in truth:
        raise ValueError("'reward_model' must be an object with 'ground_truth'")
    fields["answer"] = truth["ground_truth"]
    return from_trl(fields)
