"""GUI environments: emulated and real desktops, web pages and remote machines, behind one action space.

model's text ──codec──► Action ──► Backend ──► Screen ──► Observation
                                      │
                                   Verdict (of state that the agent cannot reach)
"""
