if __name__ == "rewards":
    raise ImportError("import vlrl.rewards, not rewards: this folder is the package vlrl.rewards")

from vlrl.scoring.author import Scored, reward

__all__ = ["Scored", "reward"]
