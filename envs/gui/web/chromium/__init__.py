"""The browser: its process, its sandbox, the DevTools pipe, and drawing."""
