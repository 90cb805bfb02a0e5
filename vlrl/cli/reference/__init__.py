"""The pages of docs/reference/, made from the code; tests/test_reference.py holds them to it."""
