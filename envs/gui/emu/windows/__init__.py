"""Windows, dialogs, menus and the desktop around them."""
