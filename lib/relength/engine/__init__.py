"""Training: one run from spec to trained checkpoints."""

from relength.engine.training import Trained, train

__all__ = ["Trained", "train"]
