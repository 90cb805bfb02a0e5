"""OpenTelemetry traces of episodes: to a file, and by OTLP to a collector that decodes what it is sent."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from builders import ScriptedPolicy, TextProcessor, make_config, make_context, text_prompt

from vlrl.config import Config
from vlrl.data.stream import Prepared, SampleStream
from vlrl.environment.host.host import EnvHost
from vlrl.rollout.groups import rollout_groups, score_groups
from vlrl.run.players.player import Player
from vlrl.scoring.compose import ComposedReward
from vlrl.tracking.timeline import Timeline
from vlrl.tracking.traces import TRACES_FILE
from vlrl.types import EnvTask, Sample

FILE = Path(__file__).parents[1] / "helpers" / "episodes.py"


def config_of(folder: Path, traces: str) -> Config:
    logging = {"traces": traces, "tensorboard": False}
    return make_config(
        run={"name": "a", "dir": str(folder)},
        rollout={"group_size": 2, "max_tokens": 8},
        rewards=[{"name": "episode_return"}],
        logging=logging,
    )


def play(config: Config) -> float:
    """Two episodes of two turns, scored together; seconds that it took to close."""
    policy = ScriptedPolicy(lambda session, sampling: [ord("-")])
    task = EnvTask(f"{FILE}:Countdown", {}, {"start": 2}, seed=7)
    timeline = Timeline.of_run(config, resumed=False)

    def prepare(row: Mapping[str, Any], source: int) -> Prepared:
        message = {"role": "user", "content": [{"type": "text", "text": "2"}]}
        prompt = text_prompt([ord(c) for c in "[user]2[assistant]"])
        return Prepared(Sample(row["id"], (message,), (), prompt, env=task))

    async def run() -> None:
        with (
            EnvHost(config.env, max_open=8, around=timeline.around_env) as host,
            ComposedReward.of_run(config, {}) as reward,
            closing(SampleStream([[{"id": "s"}]], prepare, batch_size=1, seed=0)) as stream,
        ):
            context = replace(make_context(policy, TextProcessor(), config), timeline=timeline, host=host)
            player = Player(config, stream, context, reward, masks=())
            played = await rollout_groups(stream.batch(0), context, seed_path=(0, 5))
            await score_groups(played.groups, player.reward.score_all)
            timeline.ended("trainer", "train", 0.25, step=3)

    asyncio.run(run())
    begin = time.monotonic()
    timeline.close()
    return time.monotonic() - begin


def spans_of(config: Config) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (config.run_dir / TRACES_FILE).read_text().splitlines()]


def test_an_episode_is_a_trace_of_its_requests_and_env_steps(tmp_path: Path) -> None:
    config = config_of(tmp_path, "file")
    play(config)
    spans = spans_of(config)
    episodes = [span for span in spans if span["name"] == "episode play"]
    assert sorted(span["attributes"]["vlrl.group_index"] for span in episodes) == [0, 1]
    for episode in episodes:
        assert episode["parent_id"] is None and episode["attributes"]["vlrl.sample"] == "s"
        assert episode["resource"]["attributes"]["vlrl.run"] == "a"
        own = episode["context"]
        parts = [s for s in spans if s["parent_id"] == own["span_id"]]
        assert {s["context"]["trace_id"] for s in parts} == {own["trace_id"]}
        assert sorted(s["name"] for s in parts if s["name"] != "prompt observe") == [
            *["env reset", "env step", "env step"],
            *["prompt encode"] * 2,
            "prompt prepare",  # once for all of a group's episodes, before they begin
            *["request generate", "request generate"],
            "reward score",  # after its end
        ]
        assert all(
            episode["start_time"] <= s["start_time"] <= s["end_time"] <= episode["end_time"]
            for s in parts
            if s["name"] not in ("prompt prepare", "reward score")
        )
    observed = [span for span in spans if span["name"] == "prompt observe"]
    assert observed and {s["parent_id"] for s in observed} <= {e["context"]["span_id"] for e in episodes}
    (train,) = [span for span in spans if span["name"] == "trainer train"]
    assert train["attributes"] == {"vlrl.step": 3}


def test_scoring_is_part_of_each_episode_that_was_scored(tmp_path: Path) -> None:
    config = config_of(tmp_path, "file")
    play(config)
    spans = spans_of(config)
    episodes = {span["context"]["span_id"] for span in spans if span["name"] == "episode play"}
    scored = [span for span in spans if span["name"] == "reward score"]
    assert len(scored) == 2 and {span["parent_id"] for span in scored} == episodes
    assert {span["attributes"]["vlrl.num_scored"] for span in scored} == {2}
    assert len({span["context"]["trace_id"] for span in scored}) == 2


class Collector:
    """Takes what is exported by OTLP over HTTP; `hangs` never answers."""

    def __init__(self, *, hangs: bool) -> None:
        self.spans: list[Any] = []
        collector, self.let_go = self, threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

                if hangs:
                    collector.let_go.wait()
                request = ExportTraceServiceRequest.FromString(self.body())
                for resource in request.resource_spans:
                    for scope in resource.scope_spans:
                        collector.spans += scope.spans
                self.send_response(200)
                self.end_headers()

            def body(self) -> bytes:
                import gzip

                data = self.rfile.read(int(self.headers["Content-Length"]))
                return gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data

            def log_message(self, *words: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture(params=[False, True], ids=["answers", "hangs"])
def collector(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    collector = Collector(hangs=request.param)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    yield collector
    collector.let_go.set()
    collector.server.shutdown()
    collector.server.server_close()


def test_a_collector_gets_them_and_one_that_hangs_is_left_behind(
    collector: Collector, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    seconds = play(config_of(tmp_path, "otlp"))
    if "hangs" in request.node.name:
        assert seconds < 10
    else:
        names = sorted(span.name for span in collector.spans)
        assert names.count("episode play") == 2 and names.count("env step") == 4
