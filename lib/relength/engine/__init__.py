"""Training: one run alone, or many as one program, from specs to trained checkpoints."""

from relength.engine.stack import Stack, stacks
from relength.engine.training import Trained, train

__all__ = ["Stack", "Trained", "stacks", "train"]
