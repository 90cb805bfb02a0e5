"""The report as a person uses it on a phone, by touch and by keyboard, in a real browser."""

import json

import pytest
from browser_page import BrowserPage

from vlrl.viewer.pages.report import write_report

ARROW_RIGHT = {"key": "ArrowRight", "code": "ArrowRight", "windowsVirtualKeyCode": 39}


@pytest.fixture
def page(run_dir, tmp_path):
    report = write_report(run_dir)
    with BrowserPage(report.as_uri(), tmp_path / "profile", size=(390, 844)) as page:
        page.call(
            "Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True
        )
        page.call("Emulation.setTouchEmulationEnabled", enabled=True)
        page.until("location.protocol === 'file:' && document.readyState === 'complete'")
        yield page


def boxes(page, selector):
    found = f"[...document.querySelectorAll({json.dumps(selector)})].filter(e => e.checkVisibility())"
    box = "(b => [b.left, b.top, b.right, b.bottom])(e.getBoundingClientRect())"
    return page.value(f"{found}.map(e => {box})")


def press_right(page):
    page.call("Input.dispatchKeyEvent", type="rawKeyDown", **ARROW_RIGHT)
    page.call("Input.dispatchKeyEvent", type="keyUp", **ARROW_RIGHT)


def test_on_a_phone_labels_keep_their_size_and_nothing_is_wider_than_the_screen(page):
    ticks = boxes(page, ".tick")
    assert len(ticks) > 20 and min(bottom - top for _, top, _, bottom in ticks) >= 11
    for of_chart in ("x", "y"):
        labels = boxes(page, f".panel:first-child .tick.{of_chart}")
        apart = [
            a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
            for i, a in enumerate(labels)
            for b in labels[:i]
        ]
        assert all(apart)
    assert page.value("document.documentElement.scrollWidth") == 390


def test_a_tap_and_arrow_keys_tell_a_columns_numbers(page):
    words = "[...document.querySelectorAll('.column span')]"
    shown = f"{words}.filter(e => e.checkVisibility()).map(e => e.textContent)"
    assert page.value(shown) == []
    page.value("document.querySelector('.plot').scrollIntoView({block: 'center'})")
    left, top, right, bottom = boxes(page, ".plot")[0]
    x, y = left + 0.5 * (right - left), (top + bottom) / 2
    page.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
    page.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    page.until(f"{shown}.length === 1")
    (first,) = page.value(shown)
    press_right(page)
    page.until(f"{shown}.length === 1 && !{shown}.includes({json.dumps(first)})")
    (second,) = page.value(shown)
    step = [int(text.split(":")[0].removeprefix("step ")) for text in (first, second)]
    assert step[1] == step[0] + 1


def test_arrow_keys_go_through_tokens_and_the_filter(page):
    page.value("document.querySelector('.attempt .tokens input').focus()")
    press_right(page)
    tip = "getComputedStyle(document.activeElement.parentElement, '::after').content"
    assert "logprob" in page.value(tip)
    num_cards = len(boxes(page, ".card"))
    page.value("document.querySelector('.pick input').focus()")
    press_right(page)
    assert page.value("document.activeElement.id") == "pick-changed"
    assert 0 < len(boxes(page, ".card")) == len(boxes(page, ".card.changed")) < num_cards
