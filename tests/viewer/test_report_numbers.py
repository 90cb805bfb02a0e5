"""What a report makes of a run's numbers: the verdict, its interval, the held-out points, the charts."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from digit_run import NUM_STEPS, edit_summary

from vlrl.evaluation.estimates import wilson
from vlrl.viewer.charts import Series, line_chart, short, smooth, thin, ticks
from vlrl.viewer.page import TEMPLATES
from vlrl.viewer.pages.report import heldout_series
from vlrl.viewer.run import load_run
from vlrl.viewer.verdict import verdict


@pytest.mark.parametrize(
    ("changes", "tone", "words"),
    [
        ({}, "good", "Target reached: greedy held-out accuracy rose from 0.410 to 0.947 on 360 samples"),
        ({"heldout_accuracy_after_greedy": 0.82}, "bad", "Target missed"),
        ({"heldout_accuracy_after_greedy": 0.82, "target_reached": True}, "bad", "below the target of 0.9"),
        ({"target_accuracy": 0}, "good", "rose from 0.410 to 0.947"),
        ({"num_steps": 12}, "good", "It stopped after 12 of 60 steps"),
    ],
)
def test_the_verdict_is_what_the_numbers_say(run_dir, changes, tone, words):
    edit_summary(run_dir, **changes)
    assert verdict(load_run(run_dir))[0] == tone
    assert words in verdict(load_run(run_dir))[1]


@pytest.mark.parametrize(
    ("after", "tone", "words"),
    [
        (0.43, "open", "within the noise of 360 samples"),
        (0.20, "bad", "fell from 0.410"),
        (0.41, "open", "stayed at"),
    ],
)
def test_without_a_target_noise_is_no_progress(run_dir, after, tone, words):
    edit_summary(run_dir, heldout_accuracy_after_greedy=after, target_accuracy=None)
    assert verdict(load_run(run_dir))[0] == tone
    assert words in verdict(load_run(run_dir))[1]


def test_held_out_points_lie_where_their_weights_were(run_dir):
    greedy, sampled = heldout_series(load_run(run_dir))
    assert greedy.points == [(0, 0.41), (21, 0.7), (41, 0.9), (NUM_STEPS, 0.947)]
    assert sampled.points == [(0, 0.33), (NUM_STEPS, 0.925)]


def test_the_interval_is_wilsons():
    # Newcombe 1998, table I: 81 of 263 gives 0.2553 to 0.3662.
    assert wilson(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)


def test_charts_are_well_formed_and_gaps_break_the_line():
    chart = ET.fromstring(line_chart([Series("a<b", [(0, 1.0), (1, 2.0), (2, None), (3, 1.5), (4, 1.0)])]))
    assert len(chart.findall(".//polyline[@class='s0']")) == 2
    assert [column.findtext("span") for column in chart.iter("label")][2] == "step 2: a<b \N{EN DASH}"
    assert {column.get("name") for column in chart.iter("input")} == {"a<b"}  # one group: one tab stop


def tick_texts(points, axis="y"):
    chart = ET.fromstring(line_chart([Series("a", points)]))
    return [tick.text for tick in chart.findall(f".//span[@class='tick {axis}']")]


@pytest.mark.parametrize("value", [0.0, 1e-9, 0.4, 7.0, 1e6])
def test_a_flat_chart_of_what_is_never_negative_has_no_negative_axis(value):
    labels = tick_texts([(0, value), (1, value)])
    assert len(labels) > 1 and not any(label.startswith("-") for label in labels)


@pytest.mark.parametrize("low", [0.0, 0.9991, 1000.0, 123456.0, 2e7, -0.5])
@pytest.mark.parametrize("span", [1e-13, 1e-6, 1e-3, 0.5, 3000.0])
def test_no_two_ticks_say_the_same(low, span):
    labels = tick_texts([(0, low), (1, low + span)])
    assert len(set(labels)) == len(labels) > 1


def test_rounding_around_a_value_is_flat_and_has_short_labels():
    labels = tick_texts([(0, 1.0), (1, 1.0 - 3e-13), (2, 1.0 + 1e-13)])
    assert "1" in labels and max(map(len, labels)) <= 3


def luminance(color):
    """Relative luminance, WCAG 2.2."""
    channels = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color]
    return float(np.dot(channels, (0.2126, 0.7152, 0.0722)))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_every_text_can_be_read_on_every_ground(scheme):
    style = (TEMPLATES / "style.css.j2").read_text()
    root = re.findall(r":root \{(.*?)\}", style, re.DOTALL)[scheme]
    colors = {
        name: np.array([int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)])
        for name, digits in re.findall(r"--(\w+): #(\w{6})", root)
    }
    texts = ("ink", "soft", "faint", "good", "bad", "c0", "c1", "c2", "c3", "c4", "c5")
    assert min(contrast(colors[t], colors[g]) for t in texts for g in ("ground", "card")) >= 4.5
    act = np.array([int(x) / 255 for x in re.findall(r"--act: (\d+) (\d+) (\d+)", root)[0]])
    shades = [
        float(alpha) for alpha in re.findall(r"\.p\d \{ background: rgb\(var\(--act\) / ([\d.]+)\)", style)
    ]
    assert len(shades) == 5
    assert all(contrast(colors["ink"], a * act + (1 - a) * colors["card"]) >= 4.5 for a in shades)


@pytest.mark.parametrize("points", [[], [(0, None)], [(0, 5.0)], [(0, 0.0), (1, 0.0)], [(5, 1e-9), (6, 2e9)]])
def test_charts_of_odd_data_have_finite_coordinates(points):
    text = line_chart([Series("a", points)])
    ET.fromstring(text)
    assert "nan" not in text and "inf" not in text


def test_smoothing_looks_back_only_and_thinning_keeps_the_mean():
    points = [(0, 1.0), (1, None), (2, 3.0), (3, 100.0)]
    assert smooth(points, 3)[:3] == [(0, 1.0), (1, 1.0), (2, 2.0)]
    many = [(float(x), float(x)) for x in range(1000)]
    few = thin(many, 100)
    assert len(few) == 100 and sum(y for _, y in few) / 100 == pytest.approx(499.5)


def test_ticks_are_round_and_numbers_short():
    assert ticks(0.13, 0.97, 4) == [0.2, 0.4, 0.6, 0.8]
    assert [short(v) for v in (None, 0, 0.94712, 1234.5, 2.5e-7, 3e8)] == [
        "\N{EN DASH}", "0", "0.947", "1,234", "2.5e-7", "3e8",
    ]  # fmt: skip
