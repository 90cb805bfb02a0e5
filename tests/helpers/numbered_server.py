"""A small chat server as a program: it answers after a while with its process id and the name it was given.

Options: --name NAME, --host, --port. POST /v1/chat/completions; "stream": true answers in three events.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os

from aiohttp import web

SECONDS = 0.3


async def chat(request: web.Request) -> web.StreamResponse:
    body = await request.json()
    answer = {"pid": os.getpid(), "name": request.app["name"], "asked": body["number"]}
    if not body.get("stream"):
        await asyncio.sleep(SECONDS)
        return web.json_response(answer)
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for _ in range(3):
        await asyncio.sleep(SECONDS / 3)
        await response.write(f"data: {json.dumps(answer)}\n\n".encode())
    return response


async def health(request: web.Request) -> web.Response:
    return web.Response()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default="")
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    given = parser.parse_args()
    app = web.Application()
    app["name"] = given.name
    app.router.add_get("/health", health)
    app.router.add_post("/v1/chat/completions", chat)
    web.run_app(app, host=given.host, port=given.port, print=None)
