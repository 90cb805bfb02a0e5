"""Models that leave their run: folders in Hugging Face format with a card, a hub, lists of them."""
