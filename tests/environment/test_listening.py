"""Servers for agents and environments: this machine's alone by default, others' with a secret."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import httpx2
import pytest
from endpoints import OWN_PACE, served
from serving import TOKEN, serving

from vlrl.environment.listening import is_loopback, reached_at, require_secret
from vlrl.errors import ConfigError
from vlrl.rollout.endpoint.server import TOKEN_VARIABLE

OUTWARD = {**OWN_PACE, "endpoint_host": "0.0.0.0"}
SECRET = "a-secret-of-sixteen-or-more"
ASKED = {"model": "any", "messages": [{"role": "user", "content": "hi"}]}


def answer(session: Any, sampling: Any) -> list[int]:
    return [5, 6]


async def statuses(other: str, **sections: Any) -> list[int]:
    """Status codes without a key and with it; another address of this machine stands for its network."""
    async with served(answer, **sections) as episode, httpx2.AsyncClient(timeout=10) as client:
        port, path = httpx2.URL(episode.base_url).port, httpx2.URL(episode.base_url).path
        url = f"http://{other}:{port}{path}/chat/completions"
        keys: tuple[dict[str, str], ...] = ({}, {"Authorization": f"Bearer {SECRET}"})
        return [(await client.post(url, json=ASKED, headers=key)).status_code for key in keys]


def test_the_endpoint_is_this_machines_alone_by_default() -> None:
    assert asyncio.run(statuses("127.0.0.1")) == [200, 200]
    with pytest.raises(httpx2.ConnectError):
        asyncio.run(statuses("127.0.0.2"))


def test_an_endpoint_for_other_machines_needs_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for secret in ("", "short"):
        monkeypatch.setenv(TOKEN_VARIABLE, secret)
        with pytest.raises(ConfigError, match=rf"0\.0\.0\.0 lets other machines in: set {TOKEN_VARIABLE}"):
            asyncio.run(statuses("127.0.0.2", episodes=OUTWARD))
    monkeypatch.setenv(TOKEN_VARIABLE, SECRET)
    assert asyncio.run(statuses("127.0.0.2", episodes=OUTWARD)) == [401, 200]


def test_an_environments_server_for_other_machines_needs_a_secret() -> None:
    for token in ("", "short"):
        with (
            pytest.raises(ConfigError, match="lets other machines in: give --token"),
            serving(host="0.0.0.0", token=token),
        ):
            pass
    with serving(host="0.0.0.0") as url, httpx2.Client(timeout=10) as client:
        there = f"http://127.0.0.2:{httpx2.URL(url).port}/env"
        assert client.get(there).status_code == 401
        assert client.get(there, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_which_addresses_are_this_machines_own() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.org", "")))
    assert (reached_at("::1"), reached_at("0.0.0.0")) == ("[::1]", socket.gethostname())
    require_secret("127.0.0.1", "", "")
