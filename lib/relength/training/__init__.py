"""Training: one run alone, or many as one program, from specs to trained checkpoints."""

from relength.training.alone import Trained, train
from relength.training.stack import Stack, stacks

__all__ = ["Stack", "Trained", "stacks", "train"]
