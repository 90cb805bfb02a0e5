"""One HTML file that shows what a reward pays for: verdict, scores of every completion tried, holes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vlrl.check.rewards.result import verdict
from vlrl.viewer.page import write_page

KINDS = {
    "reference": ("right answers", "f2"),
    "variant": ("right, oddly said", "f0"),
    "wrong": ("wrong answers", "f1"),
    "hollow": ("no answer", "f5"),
    "empty": ("nothing said", "f4"),
}
"""Kind of completion → (its row in the chart, the class of its colour)."""

WIDTH, ROW, LEFT, RIGHT, TOP, BOTTOM = 1040, 40, 150, 24, 8, 26
"""Size of the chart in SVG units."""
_LANES = 5


def write_reward_page(path: Path, result: Mapping[str, Any]) -> None:
    """Write the page of `vlrl reward test`.

    Args:
        path: the .html file, replaced whole.
        result: of `vlrl.check.rewards.result.result_of`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    marks = {"ok": "✓", "warn": "!", "fail": "✗", "info": "·"}
    facts = [
        ("data", f"{result['data']}, {result['num_samples']} samples"),
        ("completions", f"{result['num_calls']:,}"),
        ("form of an answer", {None: "none found", "{}": "bare"}.get(result["form"], result["form"])),
    ]
    facts += [("options", ", ".join(f"{k}={v}" for k, v in result["options"].items()))] * bool(
        result["options"]
    )
    facts += [("written in", result["place"])] * bool(result["place"])
    write_page(
        path,
        "reward.html.j2",
        result=result,
        facts=facts,
        verdict=verdict(result).capitalize() + ".",
        marks=marks,
        chart=strip_chart(result["cases"]),
        failed=[check for check in result["checks"] if check["findings"]],
        kinds=KINDS,
        number=lambda value: "–" if value is None else f"{value:.3g}",
    )


def strip_chart(cases: Sequence[Mapping[str, Any]]) -> str:
    """SVG: a row a kind, a dot a case at its mean score, a line from its lowest to its highest."""
    scored = [case for case in cases if case["mean"] is not None]
    if not scored:
        return ""
    low, high = min(case["min"] for case in scored), max(case["max"] for case in scored)
    low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
    kinds = [kind for kind in KINDS if any(case["kind"] == kind for case in scored)]
    bottom = TOP + ROW * len(kinds)

    def px(value: float) -> float:
        return float(round(LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT), 1))

    parts = [
        f'<svg viewBox="0 0 {WIDTH} {bottom + BOTTOM}" role="img" aria-label="scores by kind of completion">'
    ]
    for step in range(5):
        value = low + (high - low) * step / 4
        x = px(value)
        parts.append(f'<line class="rule" x1="{x}" x2="{x}" y1="{TOP}" y2="{bottom}"/>')
        parts.append(f'<text class="tick" x="{x}" y="{bottom + 17}" text-anchor="middle">{value:.3g}</text>')
    for row, kind in enumerate(kinds):
        middle = TOP + ROW * row + ROW / 2
        name, color = KINDS[kind]
        parts.append(f'<text class="name" x="0" y="{middle + 4}">{name}</text>')
        for number, case in enumerate(case for case in scored if case["kind"] == kind):
            y = round(middle + (number % _LANES - (_LANES - 1) / 2) * (ROW - 14) / (_LANES - 1), 1)
            parts.append(_dot(case, px, y, color))
    return "".join([*parts, "</svg>"])


def _dot(case: Mapping[str, Any], px: Any, y: float, color: str) -> str:
    """One case; names are the battery's own and hold no markup."""
    hole = " hole" if case["num_holes"] else ""
    words = f"{case['name']}: {case['mean']:.3g}"
    ends = ""
    if case["max"] > case["min"]:
        words += f" ({case['min']:.3g} … {case['max']:.3g})"
        ends = f'<line class="span" x1="{px(case["min"])}" x2="{px(case["max"])}" y1="{y}" y2="{y}"/>'
    dot = f'<circle class="{color}{hole}" cx="{px(case["mean"])}" cy="{y}" r="4"/>'
    return f"<g class='case{hole}'><title>{words}</title>{ends}{dot}</g>"
