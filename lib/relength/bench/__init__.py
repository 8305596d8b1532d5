"""Speed measurements, as ratios to a paper's frozen training loop."""

STACKS = {"cpu": (8,), "cuda": (1, 5, 10, 40)}  # how many runs as one program are measured
