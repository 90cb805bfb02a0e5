"""Commands about models that leave their run: export, list, serve, chat."""
