"""A hub on this machine that speaks the part of Hugging Face's protocol by which folders are uploaded.

Large files go by Git LFS's batch API, small ones in the commit itself; xet is not spoken.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from vlrl.process.serving import serve_until

TOKEN = "hf_a_token_that_may_write"
MAX_REGULAR_BYTES = 10_000


@dataclass
class Hub:
    """What was uploaded: files by repository and path, and the uploads of large ones."""

    url: str
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    commits: dict[str, list[str]] = field(default_factory=dict)
    private: dict[str, bool] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    uploads: list[str] = field(default_factory=list)

    def application(self) -> web.Application:
        app = web.Application(client_max_size=2**28, middlewares=[self._authorised])
        repo = "/{owner}/{name}"
        app.router.add_post("/api/repos/create", self._create)
        app.router.add_post("/api/validate-yaml", self._validate)
        app.router.add_post(f"/api/models{repo}/preupload/main", self._preupload)
        app.router.add_post(f"{repo}.git/info/lfs/objects/batch", self._batch)
        app.router.add_put("/lfs/{oid}", self._upload)
        app.router.add_post("/verify", self._verify)
        app.router.add_post(f"/api/models{repo}/commit/main", self._commit)
        app.router.add_get(f"/api/models{repo}", self._info)
        app.router.add_get(f"/api/models{repo}/revision/main", self._info)
        return app

    @web.middleware
    async def _authorised(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if not request.path.startswith("/lfs/") and request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.json_response({"error": "Invalid username or password."}, status=401)
        response: web.StreamResponse = await handler(request)
        return response

    async def _create(self, request: web.Request) -> web.Response:
        body = await request.json()
        name = f"{body.get('organization') or 'me'}/{body['name']}"
        known = name in self.files
        self.files.setdefault(name, {})
        self.private.setdefault(name, body.get("visibility") == "private" or bool(body.get("private")))
        return web.json_response({"url": f"{self.url}/{name}", "name": name}, status=409 if known else 200)

    async def _validate(self, request: web.Request) -> web.Response:
        import yaml

        content = (await request.json())["content"]
        try:
            yaml.safe_load(content.split("---")[1])
        except (IndexError, yaml.YAMLError) as error:
            return web.json_response({"errors": [{"message": str(error)}], "warnings": []}, status=400)
        return web.json_response({"errors": [], "warnings": []})

    async def _preupload(self, request: web.Request) -> web.Response:
        files = (await request.json())["files"]
        modes = [
            {
                "path": each["path"],
                "uploadMode": "lfs" if each["size"] > MAX_REGULAR_BYTES else "regular",
                "shouldIgnore": False,
                "oid": self._oid(_repo(request), each["path"]),
            }
            for each in files
        ]
        return web.json_response({"files": modes})

    def _oid(self, repo: str, path: str) -> str | None:
        """Git's hash of a small file, SHA-256 of a large one."""
        if (content := self.files[repo].get(path)) is None:
            return None
        if len(content) > MAX_REGULAR_BYTES:
            return hashlib.sha256(content).hexdigest()
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()

    async def _batch(self, request: web.Request) -> web.Response:
        found = []
        for each in (await request.json())["objects"]:
            oid, known = each["oid"], each["oid"] in self.objects
            actions = {"upload": {"href": f"{self.url}/lfs/{oid}"}, "verify": {"href": f"{self.url}/verify"}}
            found.append({"oid": oid, "size": each["size"]} | ({} if known else {"actions": actions}))
        return web.json_response(
            {"transfer": "basic", "objects": found}, content_type="application/vnd.git-lfs+json"
        )

    async def _upload(self, request: web.Request) -> web.Response:
        content, oid = await request.read(), request.match_info["oid"]
        assert hashlib.sha256(content).hexdigest() == oid
        self.objects[oid] = content
        self.uploads.append(oid)
        return web.Response()

    async def _verify(self, request: web.Request) -> web.Response:
        body = await request.json()
        right = len(self.objects.get(body["oid"], b"")) == body["size"]
        return web.Response(status=200 if right else 404)

    async def _commit(self, request: web.Request) -> web.Response:
        repo, files = _repo(request), self.files[_repo(request)]
        for line in (await request.text()).splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "header":
                self.commits.setdefault(repo, []).append(value["summary"])
            elif entry["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "lfsFile":
                files[value["path"]] = self.objects[value["oid"]]
            else:
                return web.json_response({"error": f"{entry['key']} is not known here"}, status=400)
        commit = self._head(repo)
        return web.json_response(
            {"success": True, "commitOid": commit, "commitUrl": f"{self.url}/{repo}/commit/{commit}"}
        )

    def _head(self, repo: str) -> str:
        return hashlib.sha1(str(len(self.commits.get(repo, []))).encode()).hexdigest()

    async def _info(self, request: web.Request) -> web.Response:
        repo = _repo(request)
        if repo not in self.files:
            return web.json_response({"error": "Repository not found"}, status=404)
        siblings = [{"rfilename": path} for path in self.files[repo]]
        return web.json_response({"id": repo, "sha": self._head(repo), "siblings": siblings})


def _repo(request: web.Request) -> str:
    return f"{request.match_info['owner']}/{request.match_info['name']}"


@contextmanager
def hub_server() -> Iterator[Hub]:
    """A hub without repositories."""
    listening = socket.create_server(("127.0.0.1", 0))
    hub = Hub(f"http://127.0.0.1:{listening.getsockname()[1]}")
    stopped: Future[None] = Future()
    thread = threading.Thread(
        target=lambda: asyncio.run(serve_until(hub.application(), listening, stopped)), daemon=True
    )
    thread.start()
    try:
        yield hub
    finally:
        stopped.set_result(None)
        thread.join(10)
