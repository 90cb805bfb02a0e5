"""Web pages as environments: MiniWoB++ and tasks of one's own, in one headless browser a process.

backend ──► page ──► browser (a process in a sandbox) ──► pipe (Chrome DevTools Protocol)
   │           └──► gate: serves the task's files, refuses everything else
   └──► inputs, elements: typed actions in, the accessibility tree out
"""
