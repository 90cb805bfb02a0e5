"""What an action does to the desktop: pointer, keyboard, text."""
