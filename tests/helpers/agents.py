"""Scaffolds for tests: they know OpenAI's client, and nothing of vlrl."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI, OpenAI


def countdown(base_url: str, api_key: str, model: str, task: dict[str, Any], seed: int) -> Any:
    """Counts down from task["start"] at every "-"; the reward is 1 if the model did nothing else.

    task["fails"] = what, after the first answer; with task["once"] = a folder, only the first time.
    """
    client = OpenAI(base_url=base_url, api_key=api_key, max_retries=0)
    left, messages, wrong = int(task["start"]), [], 0
    while left:
        messages.append({"role": "user", "content": str(left)})
        done = client.chat.completions.create(model=model, messages=messages, temperature=0.3)
        said = done.choices[0].message
        messages.append(said.model_dump(exclude_none=True))
        right = said.content == "-"
        left, wrong = left - right, wrong + (not right)
        _fail(task)
    task["start"] = 0  # its own to spoil
    return {
        "reward": float(not wrong),
        "success": not wrong,
        "wrong": wrong,
        "seed_low": seed % 7,
        "note": "x",
    }


async def countdown_async(base_url: str, api_key: str, model: str, task: dict[str, Any], seed: int) -> float:
    """The same in two sub-agents at once; the sum of what they earned."""
    async with AsyncOpenAI(base_url=base_url, api_key=api_key, max_retries=0) as client:

        async def one(name: str) -> float:
            messages: list[Any] = [{"role": "system", "content": name}]
            for left in range(int(task["start"]), 0, -1):
                messages.append({"role": "user", "content": str(left)})
                done = await client.chat.completions.create(model=model, messages=messages)
                messages.append(done.choices[0].message)
            return float(messages[-1].content == "-")

        return sum(await asyncio.gather(one("A"), one("B")))


def waits(base_url: str, api_key: str, model: str, task: dict[str, Any], seed: int) -> Any:
    """Counts down when there is the file task["file"]."""
    while not Path(task["file"]).exists():
        time.sleep(0.01)
    return countdown(base_url, api_key, model, task, seed)


async def hangs_async(base_url: str, api_key: str, model: str, task: dict[str, Any], seed: int) -> None:
    """Waits for ever, and notes that it was told to stop."""
    try:
        await asyncio.sleep(3600)
    finally:
        Path(task["mark"]).touch()


def says(base_url: str, api_key: str, model: str, task: dict[str, Any], seed: int) -> Any:
    """Asks once, and gives task["result"]."""
    client = OpenAI(base_url=base_url, api_key=api_key)
    client.chat.completions.create(model=model, messages=[{"role": "user", "content": "hi"}])
    return task["result"]


def looks(base_url: str, api_key: str, model: str, task: dict[str, Any], seed: int) -> float:
    """Shows the images (URLs) one after the other; the share of replies that were not cut."""
    client = OpenAI(base_url=base_url, api_key=api_key, max_retries=0)
    messages: list[Any] = []
    finished = 0
    for url in task["images"]:
        parts = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "And this?"}]
        messages.append({"role": "user", "content": parts})
        choice = client.chat.completions.create(model=model, messages=messages).choices[0]
        messages.append(choice.message)
        finished += choice.finish_reason == "stop"
    return finished / len(task["images"])


def idle(base_url: str, api_key: str, model: str, task: dict[str, Any], seed: int) -> float:
    """Asks for nothing."""
    return 1.0


def _fail(task: dict[str, Any]) -> None:
    what = task.get("fails")
    if what and task.get("once"):
        mark = Path(task["once"]) / "failed"
        what = None if mark.exists() else what
        mark.touch()
    if what == "raise":
        raise RuntimeError("broken scaffold")
    if what == "leave":
        sys.exit(3)
    if what == "timeout":
        raise TimeoutError("of its own")
    if what == "hang":
        time.sleep(3600)


if __name__ == "__main__":
    given = json.loads(os.environ["VLRL_TASK"])
    address, key = os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"]
    found = countdown(address, key, os.environ["OPENAI_MODEL"], given, int(os.environ["VLRL_SEED"]))
    print("some talk\n" + (given["says"] if "says" in given else json.dumps(found)))
