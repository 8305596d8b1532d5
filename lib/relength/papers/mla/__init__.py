"""Monotonic Location Attention for Length Generalization (Ray Chowdhury and Caragea, 2023)."""

from relength.papers.mla.experiments import EXPERIMENTS
from relength.specs.paper import Paper

PAPER = Paper(name="mla", experiments=EXPERIMENTS)
