"""A trial and its checks as one JSON-ready result, which the table, the page and --json are made from."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from vlrl.check.rewards.check import Finding, RewardCheck
from vlrl.check.rewards.checks import is_hole
from vlrl.check.rewards.trial import Trial, Try

MAX_TEXT = 240
"""Characters shown of a completion."""


def result_of(trial: Trial, checks: Sequence[RewardCheck], margin: float) -> dict[str, Any]:
    """Everything worth knowing, without any Python objects."""
    function = trial.function
    return {
        "ok": all(check.status != "fail" for check in checks),
        "reward": function.source.name,
        "label": function.label,
        "place": place_of(function.function),
        "options": dict(function.source.options),
        "data": trial.data,
        "num_samples": len(trial.samples),
        "num_calls": len(trial.tries),
        "kind": trial.profile,
        "form": trial.form[1] if trial.form else None,
        "margin": margin,
        "checks": [
            {
                "name": check.name,
                "status": check.status,
                "found": check.found,
                "findings": [_finding(f, n, trial) for f, n in _one_of_each(check.findings).items()],
            }
            for check in checks
        ],
        "cases": _cases(trial, margin),
    }


def place_of(function: Any) -> str:
    """file:line where a reward is written; "" for what has no source."""
    try:
        target = inspect.unwrap(function) if callable(function) else type(function)
        if not (inspect.isfunction(target) or inspect.isclass(target)):
            target = type(target)
        return f"{inspect.getsourcefile(target)}:{inspect.getsourcelines(target)[1]}"
    except (OSError, TypeError):
        return ""


def shortened(text: str, most: int = MAX_TEXT) -> str:
    """A completion that can be shown: its beginning and end, control characters spelled out."""
    if len(text) > most:
        cut = f" … {len(text) - most:,} characters more … "
        text = text[: most * 3 // 4] + cut + text[-(most // 4) :]
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def _one_of_each(findings: Sequence[Finding]) -> dict[Finding, int]:
    """The first finding of each case, with the number of samples that show the same."""
    first: dict[str, Finding] = {}
    counts: dict[str, int] = {}
    for finding in findings:
        name = finding.attempt.case.name
        first.setdefault(name, finding)
        counts[name] = counts.get(name, 0) + 1
    return {finding: counts[name] for name, finding in first.items()}


def _finding(finding: Finding, num_samples: int, trial: Trial) -> dict[str, Any]:
    one = finding.attempt
    trouble = one.trouble
    return {
        "case": one.case.name,
        "num_samples": num_samples,
        "sample": one.sample.id,
        "answer": shortened(str(one.sample.answer), 120),
        "why": finding.why,
        "score": _value(one.score, trial),
        "right": _value(trial.score_of(one.sample, "reference"), trial),
        "empty": _value(trial.score_of(one.sample, "empty"), trial),
        "completion": shortened(one.case.text),
        "trace": trouble.trace if trouble else "",
    }


def _cases(trial: Trial, margin: float) -> list[dict[str, Any]]:
    """One row a case, over all samples: lowest, mean and highest score, as the reward returned them."""
    by_name: dict[str, list[Try]] = {}
    for one in trial.tries:
        by_name.setdefault(one.case.name, []).append(one)
    rows = []
    for name, tries in by_name.items():
        scores = [value for one in tries if (value := _value(one.score, trial)) is not None]
        rows.append(
            {
                "name": name,
                "kind": tries[0].case.kind,
                "num": len(tries),
                "num_failed": sum(one.trouble is not None for one in tries),
                "num_holes": sum(is_hole(trial, one, margin) for one in tries),
                "min": min(scores, default=None),
                "mean": sum(scores) / len(scores) if scores else None,
                "max": max(scores, default=None),
                "example": shortened(tries[0].case.text, 120),
            }
        )
    return rows


def _value(score: float | None, trial: Trial) -> float | None:
    """The value as the reward returned it."""
    return score if score is None or trial.function.declared.higher_is_better else -score


def verdict(result: Mapping[str, Any]) -> str:
    """The result in a sentence."""
    failed = [check["name"] for check in result["checks"] if check["status"] == "fail"]
    where = f"{result['num_samples']} samples, {result['num_calls']:,} completions"
    if failed:
        return f"unsound: {', '.join(failed)} ({where})"
    about = {
        "answer": "",
        "form": "; it looks at the form alone, not at the answer",
        "penalty": "; a penalty: nothing scores above saying nothing",
    }
    return f"sound on {where}{about[result['kind']]}"
