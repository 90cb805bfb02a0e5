"""Checks of a reward before training: does it work, and does it pay for anything but the right answer?"""
