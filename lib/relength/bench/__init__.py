"""Speed measurements, and the frozen training loop that they compare with."""

STACKS = {"cpu": (8,), "cuda": (1, 5, 10, 40)}  # how many runs as one program are measured
