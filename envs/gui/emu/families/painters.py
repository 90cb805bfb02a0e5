"""The painters that families with a Shape and a TitleShape share; a family's file adds its own to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vlrl.envs.gui.emu.families import controls, lists, titles
from vlrl.envs.gui.emu.widgets.basic import Button
from vlrl.envs.gui.emu.widgets.containers import ScrollBar
from vlrl.envs.gui.emu.widgets.controls import Check, Choice, Progress, Radio, Slider, Switch, Tab
from vlrl.envs.gui.emu.widgets.entry import Entry
from vlrl.envs.gui.emu.widgets.rows import RowOf
from vlrl.envs.gui.emu.windows.frame import Frame, TitleBar, TitleButton
from vlrl.envs.gui.emu.windows.popups import Menu, MenuLine

DRAWS: Mapping[type, Callable[..., None]] = {
    Button: controls.button,
    Check: controls.check,
    Radio: controls.radio,
    Switch: controls.switch,
    Slider: controls.slider,
    Progress: controls.progress,
    Choice: controls.choice,
    Tab: controls.tab,
    Entry: controls.entry,
    RowOf: lists.row,
    Menu: lists.menu,
    MenuLine: lists.menu_line,
    ScrollBar: lists.scroll_bar,
    TitleBar: titles.title_bar,
    TitleButton: titles.title_button,
}
PLACES: Mapping[type, Callable[..., None]] = {Frame: titles.place_frame}
