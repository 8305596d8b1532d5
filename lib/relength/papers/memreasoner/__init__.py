"""MemReasoner: a memory-augmented language model architecture."""

from relength.specs.paper import Paper

PAPER = Paper(
    name="memreasoner",
    title="MemReasoner",
    short="MemReasoner",
    idea="Put facts into a language model's memory in their order, and let a question read, "
    "change, and read again.",
    cited="memreasoner",
    headlines=("memreasoner-table-2", "memreasoner-table-3"),
    columns={"avg<=8k": "mean to 8k", "avg>=16k": "mean from 16k"},
    recounts="recounts:RECOUNTS",
)
