"""A Prometheus server of Debian's, which scrapes what a list of targets names, and evaluates rules."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from rank_processes import free_port

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus" / "alerts.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "vlrl.json"
READY_S = 30.0


class PrometheusServer:
    """A running server."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def _get(self, path: str, **query: str) -> Any:
        url = f"{self._url}{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an expression now; raises HTTPError where it cannot be evaluated."""
        return list(self._get("/api/v1/query", query=expression)["result"])

    def alerts(self) -> dict[str, dict[str, str]]:
        """Labels of what fires, by the alert's name."""
        return {
            alert["labels"]["alertname"]: alert["labels"]
            for alert in self._get("/api/v1/alerts")["alerts"]
            if alert["state"] == "firing"
        }

    def until(self, check: Callable[[], Any], timeout_s: float = 60.0) -> Any:
        """What a check returns, once that is true."""
        end = time.monotonic() + timeout_s
        while not (found := check()):
            assert time.monotonic() < end, f"not so within {timeout_s:g} s; alerts: {self.alerts()}"
            time.sleep(0.5)
        return found


@contextmanager
def prometheus(folder: Path, targets: Path) -> Iterator[PrometheusServer]:
    """Start a server that looks every second, with the alerts of deploy/, whose `for` is left out.

    Args:
        folder: for its files.
        targets: a list that a run keeps.
    """
    rules = yaml.safe_load(RULES.read_text())
    for rule in rules["groups"][0]["rules"]:
        rule.pop("for", None)
    (folder / "alerts.yml").write_text(yaml.safe_dump(rules))
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["alerts.yml"],
        "scrape_configs": [
            {"job_name": "vlrl", "file_sd_configs": [{"files": [str(targets)], "refresh_interval": "1s"}]}
        ],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    port = free_port()
    server = subprocess.Popen(
        [
            *("prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"),
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=(folder / "prometheus.log").open("w"),
    )
    try:
        end = time.monotonic() + READY_S
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=5).close()
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < end, (
                    folder / "prometheus.log"
                ).read_text()
                time.sleep(0.2)
        yield PrometheusServer(port)
    finally:
        server.kill()
        server.wait()


def dashboard_queries() -> list[tuple[str, str]]:
    """(panel's title, expression) of each query of the dashboard, for all runs."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [
        (panel["title"], target["expr"].replace("$run", ".*").replace("$__rate_interval", "30s"))
        for panel in panels
        for target in panel.get("targets", ())
    ]


def rule_queries() -> list[tuple[str, str]]:
    """(alert's name, expression) of each rule."""
    return [(rule["alert"], rule["expr"]) for rule in yaml.safe_load(RULES.read_text())["groups"][0]["rules"]]
