"""MemReasoner: a memory-augmented language model architecture."""

from relength.papers.memreasoner.experiments import EXPERIMENTS
from relength.specs.paper import Paper

PAPER = Paper(
    name="memreasoner",
    title="MemReasoner",
    short="MemReasoner",
    idea="Put facts into a language model's memory in their order, and let a question read, "
    "change, and read again.",
    cited="memreasoner",
    task_names={
        "babi/task1": "babi_one_fact/babi",
        "babi/task2": "babi_two_facts/babi",
        "babilong/task1": "babi_one_fact",
        "babilong/task2": "babi_two_facts",
        "task2_to_babilong_task1": "babi_two_facts_then_one",
    },
    row_names={
        "MemReasoner-1.4B (bAbi)": "MemReasoner",
        "RMT-.77B (bAbi)": "RMT",  # the larger of two, as in Table 1
        "Mamba-1.4B (bAbi)": "Mamba",
        "Larimar-1.3B (bAbi)": "Larimar",
    },
    headlines=("memreasoner-table-2", "memreasoner-table-3"),
    columns={"avg<=8k": "mean to 8k", "avg>=16k": "mean from 16k"},
    recounts="recounts:RECOUNTS",
    experiments=EXPERIMENTS,
    colours={"MemReasoner": "#7e58fe", "RMT": "#0090cc"},
    # A Transformer that only decodes, a recurrent network, soft attention to contents, and the
    # model that MemReasoner is built on: too many colours cannot be told apart.
    variants={
        "GPT": "Transformer",
        "Mamba": "LSTM",
        "MemN2N": "Content Attention",
        "Larimar": "MemReasoner",
    },
    words={"babi": "bAbI"},
    selection="The last weights are tested; no test takes part in a choice.",
)
