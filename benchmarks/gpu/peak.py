"""The bfloat16 rates of data sheets, which MFU is counted against."""

from __future__ import annotations

NOMINAL_TFLOPS = {
    "GB200": 2500.0,
    "B200": 2250.0,
    "H200 NVL": 835.5,
    "H200": 989.5,
    "H100 NVL": 835.5,
    "H100 PCIe": 756.5,
    "H100": 989.5,
    "A100": 312.0,
    "A800": 312.0,
    "L40S": 362.0,
}
"""Dense products with float32 sums, by a part of the device's name; the first that fits counts."""


def nominal_rate(name: str) -> float | None:
    """Operations/s of a GPU by its data sheet; None of one that is not listed."""
    return next((rate * 1e12 for part, rate in NOMINAL_TFLOPS.items() if part in name), None)
