"""Large images of which a tool shows the details."""
