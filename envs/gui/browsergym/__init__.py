"""Tasks of BrowserGym (MiniWoB, WebArena, VisualWebArena, WorkArena, …), in an interpreter of its own.

env, backend ──► programs: idle ones are kept ──► program/episodes.py: BrowserGym, Playwright, a browser
   └──► calls: typed actions as calls of BrowserGym's action set
"""
