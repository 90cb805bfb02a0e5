"""What a reward's author wants to know before training: does it work, and can it be had without an answer?"""
