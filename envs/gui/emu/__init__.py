"""An emulated desktop in NumPy alone: its state is a value, its pixels are the same on every machine.

Action ──pointer, keyboard──► Event ──app.handle──► World ──app.build──► widgets ──place──► items ──► pixels
"""
