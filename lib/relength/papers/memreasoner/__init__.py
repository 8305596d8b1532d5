"""MemReasoner: a memory-augmented language model architecture."""

from relength.papers.memreasoner import ablation_experiments, variable_experiments
from relength.papers.memreasoner.experiments import EXPERIMENTS
from relength.specs.paper import Arm, Paper

# Tables that ask one model everything; elsewhere each test has a task of its own.
ASKED = {
    f"memreasoner-table-{table}:{printed}": f"babi_two_facts_new_places{test}"
    for table in (18, 20)
    for printed, test in {
        "babilong/task2": "",
        **{f"task2_to_babilong_task1/{n}": f"/one-fact-{n}" for n in ("0k", "1k", "2k", "4k")},
    }.items()
}

PAPER = Paper(
    name="memreasoner",
    title="MemReasoner",
    short="MemReasoner",
    idea="Put facts into a language model's memory in their order, and let a question read, "
    "change, and read again.",
    cited="memreasoner",
    parameters=1.4e9,  # section 4.1
    task_names={
        "babi/task1": "babi_one_fact/babi",
        "babi/task2": "babi_two_facts/babi",
        "babilong/task1": "babi_one_fact",
        "babilong/task2": "babi_two_facts",
        "task2_to_babilong_task1": "babi_two_facts_then_one",
        "babi_location_change/task1": "babi_one_fact_new_places/moved",
        "babi_location_change/task2": "babi_two_facts_new_places/moved",
        **ASKED,
    },
    row_names={
        "MemReasoner-1.4B (bAbi)": "MemReasoner",
        "MemReasoner-1.4B (VT)": "MemReasoner",
        "1-layer bi-directional GRU": "MemReasoner",
        "alpha=8": "MemReasoner",
        "MemReasoner (full)": "MemReasoner",
        "epochs=200": "MemReasoner",
        "RMT-.77B (bAbi)": "RMT",  # the larger of two, as in Table 1
        "Mamba-1.4B (bAbi)": "Mamba",
        "Larimar-1.3B (bAbi)": "Larimar",
        "RMT-.77B (VT)": "RMT",
        "Larimar-1.3B (VT)": "Larimar",
    },
    headlines=("memreasoner-table-2", "memreasoner-table-3"),
    columns={"avg<=8k": "mean to 8k", "avg>=16k": "mean from 16k"},
    guessed={"babi_": 100 / 6},  # one of six places
    recounts="recounts:RECOUNTS",
    experiments=(
        *EXPERIMENTS,
        *ablation_experiments.EXPERIMENTS,
        *variable_experiments.EXPERIMENTS,
    ),
    colours={"MemReasoner": "#7e58fe", "RMT": "#0090cc"},
    # A Transformer that only decodes, a recurrent network, soft attention to contents, and the
    # model that MemReasoner is built on: too many colours cannot be told apart.
    variants={
        "GPT": "Transformer",
        "Mamba": "LSTM",
        "MemN2N": "Content Attention",
        "Larimar": "MemReasoner",
    },
    borrowed={"memreasoner_other_decoders": None, "memreasoner_cost": None},
    without_runs=tuple(f"memreasoner-table-{number}" for number in (6, 8, 9, 11, 12)),
    benchmark="cost_page:benchmark",
    computed="computed:decided",
    arms={"ruler": Arm("as RULER generates", "the text on chains that RULER's code would draw")},
    released="MemReasoner with the memory of Larimar's public code; its own code is not public",
    words={
        "babi": "bAbI",
        "babilong": "BABILong",
        "vt": "Variable Tracking,",
        "1hop": "1 Hop",
        "2hop": "2 Hops",
    },
    quoted=("memreasoner-017", "memreasoner-022"),
    asked_first=(
        *("memreasoner-001", "memreasoner-002", "memreasoner-003"),
        *("memreasoner-017", "memreasoner-022", "memreasoner-042"),
    ),
    claims={
        "findings_memreasoner_claims": (
            *("memreasoner-001", "memreasoner-056", "memreasoner-010", "memreasoner-015"),
            *("memreasoner-007", "memreasoner-009", "memreasoner-017", "memreasoner-022"),
            *("memreasoner-037", "memreasoner-051"),
        ),
        "findings_memreasoner_memory_claims": (
            *("memreasoner-039", "memreasoner-040", "memreasoner-041"),
        ),
        "findings_memreasoner_update_claims": (
            *("memreasoner-045", "memreasoner-046", "memreasoner-049", "memreasoner-050"),
        ),
        "findings_memreasoner_cost": ("memreasoner-027", "memreasoner-028", "memreasoner-030"),
        "findings_memreasoner_order_claims": (
            *("memreasoner-042", "memreasoner-043", "memreasoner-044"),
        ),
        "findings_memreasoner_hops": (*("memreasoner-003", "memreasoner-026", "memreasoner-047"),),
        "findings_memreasoner_places_claims": ("memreasoner-002",),
        "findings_memreasoner_chain_claims": (
            *("memreasoner-034", "memreasoner-035", "memreasoner-036"),
        ),
    },
    passages=("findings:PASSAGES",),
    selection="The last weights are tested; no test takes part in a choice.",
)
