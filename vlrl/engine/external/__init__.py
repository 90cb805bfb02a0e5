"""Engines that run elsewhere: vLLM servers that `vlrl engine` started, and the actors that speak to them."""
