"""Painting bar charts, line charts and pies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vlrl.envs.visual.drawing.draw import COLOURS, FAINT, INK, UNITS, WHITE, Colour, Sketch, around, shade
from vlrl.types import ByteArray

_NAMES = ("blue", "orange", "green", "purple", "red", "cyan")
TINTS: Sequence[Colour] = tuple(COLOURS[name] for name in _NAMES)
NUM_STEPS = 6
"""Grid lines above zero."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 34.0, 216.0, 34.0, 190.0


@dataclass(frozen=True, slots=True)
class Chart:
    """What a chart shows.

    Attributes:
        names: [num_categories] along the axis, or of the slices.
        series: of the legend; one without a name has no legend.
        values: [num_series][num_categories].
        step: between grid lines, of which there are NUM_STEPS.
    """

    names: Sequence[str]
    series: Sequence[str]
    values: Sequence[Sequence[float]]
    step: float = 1.0

    def value(self, name: str, series: int = 0) -> float:
        """Value of a category."""
        return self.values[series][self.names.index(name)]


def bars(image_size: int, chart: Chart, first_tint: int) -> ByteArray:
    """Bars from the axis, those of one category side by side."""
    image = _axes(image_size, chart, first_tint)
    wide = (_RIGHT - _LEFT) / len(chart.names)
    bar = wide * 0.74 / len(chart.series)
    for index, values in enumerate(chart.values):
        for position, value in enumerate(values):
            x = _LEFT + (position + 0.13) * wide + index * bar
            image.rectangle((x, _height(chart, value), x + bar, _BOTTOM), _tint(first_tint + index))
    image.line([(_LEFT, _BOTTOM), (_RIGHT, _BOTTOM)], INK, 1.5)
    return image.finish()


def lines(image_size: int, chart: Chart, first_tint: int) -> ByteArray:
    """A line through dots for each series."""
    image = _axes(image_size, chart, first_tint)
    wide = (_RIGHT - _LEFT) / len(chart.names)
    image.line([(_LEFT, _BOTTOM), (_RIGHT, _BOTTOM)], INK, 1.5)
    for index, values in enumerate(chart.values):
        places = [
            (_LEFT + (position + 0.5) * wide, _height(chart, value)) for position, value in enumerate(values)
        ]
        image.line(places, _tint(first_tint + index), 2)
        for place in places:
            image.circle(place, 3.6, _tint(first_tint + index), WHITE, 0.8)
    return image.finish()


def pie(image_size: int, chart: Chart, first_tint: int) -> ByteArray:
    """Slices with their percentages; their names are in a legend."""
    image = Sketch(image_size, WHITE)
    middle, radius, angle = (78.0, UNITS / 2), 68.0, -90.0
    for index, (name, value) in enumerate(zip(chart.names, chart.values[0], strict=True)):
        colour = shade(_tint(first_tint + index), 0.3)
        end = angle + 3.6 * value
        image.sector(middle, radius, angle, end, colour)
        image.text(around(middle, radius * 0.66, (angle + end) / 2), f"{value:g}%", 12)
        y = UNITS / 2 + (index - (len(chart.names) - 1) / 2) * 24
        image.rectangle((160, y - 6, 172, y + 6), colour)
        image.text((178, y), name, 12, anchor="lm")
        angle = end
    return image.finish()


def _axes(image_size: int, chart: Chart, first_tint: int) -> Sketch:
    """Grid, numbers, names and legend."""
    image = Sketch(image_size, WHITE)
    for index in range(NUM_STEPS + 1):
        y = _height(chart, index * chart.step)
        image.line([(_LEFT, y), (_RIGHT, y)], FAINT, 1)
        image.text((_LEFT - 5, y), f"{index * chart.step:g}", 11, anchor="rm")
    wide = (_RIGHT - _LEFT) / len(chart.names)
    for position, name in enumerate(chart.names):
        image.text((_LEFT + (position + 0.5) * wide, _BOTTOM + 14), name, 11)
    if len(chart.series) > 1:
        x = _LEFT + 4
        for index, name in enumerate(chart.series):
            image.rectangle((x, 10, x + 10, 20), _tint(first_tint + index))
            image.text((x + 14, 15), name, 11, anchor="lm")
            x += 26 + image.text_width(name, 11)
    return image


def _height(chart: Chart, value: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * value / (NUM_STEPS * chart.step)


def _tint(index: int) -> Colour:
    return TINTS[index % len(TINTS)]
