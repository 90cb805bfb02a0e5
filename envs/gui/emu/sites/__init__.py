"""The emulated web; importing this makes all of its sites known."""

from vlrl.envs.gui.emu.sites import club, fly, forum, shop, wiki

__all__ = ["club", "fly", "forum", "shop", "wiki"]
