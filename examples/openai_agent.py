"""An agent that counts dots and may check its count with a tool: OpenAI's client in a loop, nothing of vlrl.

    OPENAI_BASE_URL=… OPENAI_API_KEY=… OPENAI_MODEL=… python examples/openai_agent.py

plays one episode against any endpoint. vlrl trains the model behind it with configs/openai_agent.yaml, whose
rows name the function `run` (or this program) as it is.
"""

from __future__ import annotations

import base64
import io
import json
import os
import random
import re
from typing import Any

from openai import OpenAI
from PIL import Image, ImageDraw

SIDE, RADIUS, CELLS = 168, 14, 4
CHECK = {
    "type": "function",
    "function": {
        "name": "check",
        "description": "Says whether a count is too low, too high or right.",
        "parameters": {
            "type": "object",
            "properties": {"count": {"type": "integer"}},
            "required": ["count"],
        },
    },
}


def dots(count: int, rng: random.Random) -> str:
    """An image of so many dots, as a data: URL."""
    image = Image.new("RGB", (SIDE, SIDE), "white")
    draw = ImageDraw.Draw(image)
    for cell in rng.sample(range(CELLS * CELLS), count):
        x, y = ((place + 0.5) * SIDE / CELLS for place in (cell % CELLS, cell // CELLS))
        draw.ellipse((x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS), fill="black")
    out = io.BytesIO()
    image.save(out, "PNG")
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()


def check(arguments: str, count: int) -> str:
    """The tool; what the model wrote may be anything."""
    given = json.loads(arguments).get("count")
    if not isinstance(given, int):
        return "count must be a whole number"
    return "right" if given == count else "too low" if given < count else "too high"


def run(base_url: str, api_key: str, model: str, task: dict[str, Any], seed: int) -> dict[str, Any]:
    """One episode: reward 1 for the right count, less 0.1 for every check."""
    rng = random.Random(seed)
    count = rng.randint(1, task.get("most", 9))
    question = [
        {"type": "image_url", "image_url": {"url": dots(count, rng)}},
        {"type": "text", "text": "How many dots are there? End with the number."},
    ]
    messages: list[Any] = [{"role": "user", "content": question}]
    client, num_checks = OpenAI(base_url=base_url, api_key=api_key), 0
    while True:
        reply = (
            client.chat.completions.create(model=model, messages=messages, tools=[CHECK]).choices[0].message
        )
        messages.append(reply)
        if not reply.tool_calls or num_checks >= task.get("max_checks", 3):
            break
        for call in reply.tool_calls:
            num_checks += 1
            answer = check(call.function.arguments, count)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": answer})
    found = re.search(r"(\d+)\W*$", reply.content or "")
    success = found is not None and int(found[1]) == count
    return {"reward": success - 0.1 * num_checks, "success": success, "num_checks": num_checks}


if __name__ == "__main__":
    where = {name: os.environ[f"OPENAI_{name.upper()}"] for name in ("base_url", "api_key", "model")}
    task, seed = json.loads(os.environ.get("VLRL_TASK", "{}")), int(os.environ.get("VLRL_SEED", "0"))
    print(json.dumps(run(**where, task=task, seed=seed)))
