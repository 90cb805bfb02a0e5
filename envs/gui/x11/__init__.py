"""A real X desktop as an environment: Xvfb, icewm and Debian's apps, each desktop in a sandbox of its own."""
