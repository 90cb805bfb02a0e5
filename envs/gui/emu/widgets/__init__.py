"""The widgets an app's `build` puts together."""

from vlrl.envs.gui.emu.state import MenuItem
from vlrl.envs.gui.emu.widgets.base import View, Widget
from vlrl.envs.gui.emu.widgets.basic import Button, Divider, Image, Label, Link, Space
from vlrl.envs.gui.emu.widgets.canvas import Canvas
from vlrl.envs.gui.emu.widgets.containers import ButtonRow, Column, Grid, Row, ScrollArea
from vlrl.envs.gui.emu.widgets.controls import (
    Check,
    Choice,
    Progress,
    Radio,
    Slider,
    Switch,
    field_row,
    section,
    spinner,
    tabs,
)
from vlrl.envs.gui.emu.widgets.entry import Entry
from vlrl.envs.gui.emu.widgets.menus import SEPARATOR, MenuBar, tool_bar, tool_button
from vlrl.envs.gui.emu.widgets.rows import Line, Rows

__all__ = [
    "SEPARATOR",
    "Button",
    "ButtonRow",
    "Canvas",
    "Check",
    "Choice",
    "Column",
    "Divider",
    "Entry",
    "Grid",
    "Image",
    "Label",
    "Line",
    "Link",
    "MenuBar",
    "MenuItem",
    "Progress",
    "Radio",
    "Row",
    "Rows",
    "ScrollArea",
    "Slider",
    "Space",
    "Switch",
    "View",
    "Widget",
    "field_row",
    "section",
    "spinner",
    "tabs",
    "tool_bar",
    "tool_button",
]
