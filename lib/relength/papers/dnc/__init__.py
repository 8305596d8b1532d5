"""State-Space Constraints Improve the Generalization of the Differentiable Neural Computer."""

from relength.specs.paper import Paper

PAPER = Paper(name="dnc")
