"""The emulated web; importing this makes all of its sites known."""

from vlrl.envs.gui.emu.sites import club, fly, forum, shop, wiki
from vlrl.envs.gui.emu.sites.dense import ads, market, power

__all__ = ["ads", "club", "fly", "forum", "market", "power", "shop", "wiki"]
