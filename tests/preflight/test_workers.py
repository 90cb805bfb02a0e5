"""Processes that audit rows: one that hangs is not waited for, one that cannot start says why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from builders import make_config

from vlrl.config import Config
from vlrl.errors import ConfigError
from vlrl.preflight.plan import plan_check
from vlrl.preflight.workers import audit_rows


def config_with(folder: Path, answers: list[str], reward: str, **sections: Any) -> Config:
    rows = [
        {"id": answer, "messages": [{"role": "user", "content": f"Say {answer}"}], "answer": answer}
        for answer in answers
    ]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "reward.py").write_text(f"import os, time\n\n\ndef score(completion, answer):\n{reward}\n")
    return make_config(
        "models/not_there",
        data={"train": {"name": str(folder / "rows.jsonl")}},
        rewards=[{"name": f"{folder / 'reward.py'}:score"}],
        **sections,
    )


def test_a_row_that_never_ends_is_given_up(tmp_path: Path) -> None:
    reward = "    if answer == 'slow': time.sleep(10_000)\n    return float(len(completion))"
    job, _ = plan_check(config_with(tmp_path, ["a", "slow", "b"], reward))
    seen: list[str] = []
    audits = audit_rows(job, 1, lambda audit: seen.append(audit.id), row_timeout_s=3.0)
    assert [(a.row, [p.reason for p in a.problems]) for a in audits] == [
        (0, []),
        (1, ["kills the reader"]),
        (2, []),
    ]
    assert "took more than 3 s" in audits[1].problems[0].message
    assert len(seen) == 3


def test_a_row_is_blamed_only_if_it_kills_twice(tmp_path: Path) -> None:
    """Memory that another program took, for instance, is not the row's fault."""
    marker = tmp_path / "once"
    reward = f"    if answer == 'b' and not os.path.exists({str(marker)!r}):\n"
    reward += f"        open({str(marker)!r}, 'w').close(); os._exit(9)\n    return float(len(completion))"
    job, _ = plan_check(config_with(tmp_path, ["a", "b", "c"], reward))
    audits = audit_rows(job, 1)
    assert marker.exists()
    assert [(a.id, a.problems) for a in audits] == [("a", ()), ("b", ()), ("c", ())]


def test_a_worker_that_cannot_open_the_model_says_why(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    config = config_with(tmp_path, ["a"], "    return 1.0")
    config = config.model_copy(
        update={"model": config.model.model_copy(update={"path": str(tmp_path / "empty")})}
    )
    job, _ = plan_check(config)
    with pytest.raises(ConfigError, match=r"without a config\.json"):
        audit_rows(job, 1)
