"""Numbers with units as people write them, read strictly and exactly: "1,234.5 km", "3/4", "5%", "1e3"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: what it measures, and how many of the first unit of that kind it is."""

    kind: str
    factor: Fraction


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number and the unit that was written with it, if any."""

    number: Fraction
    unit: Unit | None

    def measured_in(self, unit: Unit | None) -> Fraction | None:
        """Its number in `unit`, its own being `unit` if it has none; None if they do not measure the same."""
        ours, theirs = self.unit or unit or PLAIN, unit or PLAIN
        return self.number * ours.factor / theirs.factor if ours.kind == theirs.kind else None


PLAIN = Unit("number", Fraction(1))
_INCH, _DAY, _POUND = Fraction("0.0254"), Fraction(86400), Fraction("0.45359237")
# kind → spellings separated by spaces → how many of the base unit. Symbols are as they are; words of four and
# more letters may also be capitalised and have a plural s. Not here: temperatures, whose zeros differ.
_TABLE: Mapping[str, Mapping[str, Fraction]] = {
    "number": {"% percent": Fraction(1, 100)},
    "length": {
        "m meter metre": Fraction(1),
        "mm millimeter millimetre": Fraction(1, 1000),
        "cm centimeter centimetre": Fraction(1, 100),
        "dm": Fraction(1, 10),
        "km kilometer kilometre": Fraction(1000),
        "in inch inches": _INCH,
        "ft feet foot": 12 * _INCH,
        "yd yard": 36 * _INCH,
        "mi mile": 63360 * _INCH,
    },
    "mass": {
        "kg kilogram": Fraction(1),
        "g gram": Fraction(1, 1000),
        "mg milligram": Fraction(1, 10**6),
        "t tonne": Fraction(1000),
        "lb lbs pound": _POUND,
        "oz ounce": _POUND / 16,
    },
    "time": {
        "s sec second": Fraction(1),
        "ms millisecond": Fraction(1, 1000),
        "min minute": Fraction(60),
        "h hr hour": Fraction(3600),
        "d day days": _DAY,
        "week": 7 * _DAY,
    },
    "angle": {"° deg degree": Fraction(1)},
    "area": {"m² m^2": Fraction(1), "mm² mm^2": Fraction(1, 10**6), "cm² cm^2": Fraction(1, 10**4)}
    | {"km² km^2": Fraction(10**6), "ha hectare": Fraction(10**4), "ft² ft^2": 144 * _INCH**2},
    "volume": {"m³ m^3": Fraction(1), "cm³ cm^3": Fraction(1, 10**6), "mm³ mm^3": Fraction(1, 10**9)}
    | {"l L liter litre": Fraction(1, 1000), "ml mL milliliter millilitre": Fraction(1, 10**6)},
    "speed": {"m/s": Fraction(1), "km/h kph": Fraction(5, 18), "mph": 63360 * _INCH / 3600},
    "dollar": {"$ dollar USD": Fraction(1), "cent ¢": Fraction(1, 100)},
    "euro": {"€ euro EUR": Fraction(1)},
    "sterling": {"£ GBP": Fraction(1)},
    "yen": {"¥ JPY": Fraction(1)},
}
_UNITS: dict[str, Unit] = {}
for _kind, _spellings in _TABLE.items():
    for _names, _factor in _spellings.items():
        for _name in _names.split():
            _UNITS[_name] = Unit(_kind, _factor)
            if len(_name) >= 4 and _name.isalpha():
                _UNITS[f"{_name}s"] = Unit(_kind, _factor)

_QUANTITY = re.compile(
    r"(?P<sign>[-+]?)(?P<money>[$€£¥]?)"
    r"(?:(?:(?P<whole>[0-9]{1,18})\ +)?(?P<over>[0-9]{1,18})\ ?/\ ?(?P<under>[0-9]{1,18})"
    r"|(?P<decimal>(?:[0-9]{1,3}(?:,[0-9]{3}){1,6}|[0-9]{0,60})(?:\.[0-9]{0,60})?)"
    r"(?:(?:[eE]|\ ?[x×]\ ?10\^)(?P<exponent>[-+]?[0-9]{1,3}))?)"
    r"(?:\ ?(?P<unit>[^\s0-9.,+-].{0,20}))?"
)


def find_unit(name: str) -> Unit | None:
    """The unit of this spelling; None if it is not in the table."""
    return _UNITS.get(name) or (_UNITS.get(name.lower()) if len(name) >= 4 else None)


def read_quantity(text: str) -> Quantity | None:
    """Read a number, perhaps with a unit; None for anything else.

    Accepted: sign, digits with a point or thousands separators, an exponent (1e3, 1 x 10^3), a fraction
    (3/4) or mixed fraction (1 3/4), a currency sign before or any unit of the table after it. The digits are
    ASCII. Time and memory are bounded: at most 60 digits and a three-digit exponent.
    """
    match = _QUANTITY.fullmatch(text.strip().replace("\N{MINUS SIGN}", "-"))
    if not match or (match["money"] and match["unit"]):
        return None
    number = _number(match)
    name = match["money"] or match["unit"]
    unit = find_unit(name) if name else None
    if number is None or (name and unit is None):
        return None
    return Quantity(-number if match["sign"] == "-" else number, unit)


def _number(match: re.Match[str]) -> Fraction | None:
    if match["over"]:
        under = int(match["under"])
        return int(match["whole"] or 0) + Fraction(int(match["over"]), under) if under else None
    digits = match["decimal"].replace(",", "")
    if not digits.strip("."):
        return None
    return Fraction(digits.rstrip(".")) * Fraction(10) ** int(match["exponent"] or 0)
