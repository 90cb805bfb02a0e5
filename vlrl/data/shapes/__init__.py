"""The layouts that people's records have, each turned into the same conversation."""
