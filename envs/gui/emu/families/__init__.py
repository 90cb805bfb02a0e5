"""Widget families: how the widgets, windows and bars of a desktop are drawn; each is one file."""

from vlrl.envs.gui.emu.drawing.family import FAMILIES
from vlrl.envs.gui.emu.families import adwaita, aqua, fluent

__all__ = ["FAMILIES", "adwaita", "aqua", "fluent"]
