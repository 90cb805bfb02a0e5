"""A guessing game on an image, written for TRL: GRPOTrainer(environment_factory=GuessTheNumber, …).

vlrl runs the same class, unchanged:

    env: trl
    options: {factory: ./examples/environments/trl_guess.py:GuessTheNumber}
"""

import random

from PIL import Image, ImageDraw


class GuessTheNumber:
    def __init__(self):
        self.number, self.num_guesses, self.found = 0, 0, False

    def reset(self, seed: int | None = None, highest: int = 20, **kwargs) -> str | None:
        self.number = random.Random(seed).randint(1, highest)
        self.num_guesses, self.found = 0, False
        return f"I think of a number from 1 to {highest}. Guess it; look at the scale for help."

    def guess(self, number: int) -> str:
        """
        Guess the number.

        Args:
            number: The guess.

        Returns:
            Whether the number is higher or lower.
        """
        if self.found:
            raise ValueError("Game over.")
        self.num_guesses += 1
        self.found = number == self.number
        return "right" if self.found else "higher" if number < self.number else "lower"

    def look(self) -> list:
        """
        Look at a scale that leans to the side on which the number is.

        Returns:
            An image.
        """
        image = Image.new("RGB", (56, 56), "white")
        ImageDraw.Draw(image).line((0, self.number, 55, 55 - self.number), fill="black", width=3)
        return [{"type": "image", "image": image}, {"type": "text", "text": "The scale:"}]

    def get_reward(self) -> float:
        return 1.0 / self.num_guesses if self.found else 0.0
