"""MemReasoner: a memory-augmented language model architecture."""

from relength.specs.paper import Paper

PAPER = Paper(name="memreasoner")
