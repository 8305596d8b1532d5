"""Speed measurements, and the frozen training loop that they compare with."""
