"""Pointer-Augmented Neural Memory."""

from relength.papers.panm import (
    babi_experiments,
    dyck_experiments,
    language_experiments,
    mathematics_experiments,
    scan_experiments,
    squad_experiments,
    translation_experiments,
)
from relength.papers.panm.experiments import EXPERIMENTS
from relength.specs.paper import Arm, Paper, Speed

CLAIMS = {
    "findings_panm_addresses": ("panm-013", "panm-015", "panm-016", "panm-017", "panm-018"),
    "findings_panm_tables": (
        "panm-004",
        "panm-020",
        "panm-021",
        "panm-028",
        "panm-031",
        "panm-039",
    ),
    "findings_panm_pointers": ("panm-025", "panm-026", "panm-027", "panm-029", "panm-030"),
    "findings_panm_cost": (
        *("panm-074", "panm-076", "panm-077", "panm-078", "panm-080", "panm-090"),
    ),
    "findings_panm_heads": ("panm-081", "panm-082", "panm-083", "panm-086", "panm-087"),
}
EFFECTS = {
    "findings_panm_readings": {
        "How sharply a pointer can point": "a temperature in Eqs. 2 and 5",
        "The pointer that is read back": "the released code, with one line mended",
        "Base address at test": "a random base instead of 0",
        "The rule of Mix": "Mix by the rule of the paper's example, not of its text",
        "Answer of Dynamic Recall": "Dynamic Recall with all tokens that follow",
    },
    "findings_panm_scale": {"Training budget at scale reduced": "more training"},
}

PAPER = Paper(
    name="panm",
    title="Pointer-Augmented Neural Memory",
    short="PANM",
    idea="Give every slot of memory an address that does not depend on what lies there, and let "
    "the network move pointers over the addresses.",
    cited="le2024panm",
    task_names={
        "copy": "panm_copy",
        "reverse": "panm_reverse",
        "mix": "panm_mix",
        "drecall": "panm_dynamic_recall",
        "psort": "panm_priority_sort",
        "idsort": "panm_id_sort",
        **{f"scan/{n}": f"scan_{n}/length" for n in scan_experiments.CUT_OFFS},
        "math/add_or_sub": "math_add_or_sub/length",
        "math/place_value": "math_place_value/length",
        "babi/0.8-0.2": "babi_80/length",
        "babi/0.5-0.5": "babi_50/length",
        "squad/0.8-0.2/F1": "squad_80/length",
        "squad/0.5-0.5/F1": "squad_50/length",
        # Table 7, whose tasks are in letters and words; ten letters are the longest of training
        "panm-table-8:arithmetic/0-shot": "bigbench_arithmetic/length",
        "panm-table-8:abstract/0-shot": "bigbench_abstract/length",
        "panm-table-8:arithmetic/5-shot": "bigbench_arithmetic/5-shot",
        "panm-table-8:abstract/5-shot": "bigbench_abstract/5-shot",
        "panm-table-7:copy": "llm_copy",
        "panm-table-7:drecall": "llm_dynamic_recall",
        "panm-table-7:copy/10": "llm_copy/iid",
        "panm-table-7:drecall/10": "llm_dynamic_recall/iid",
    },
    row_names={
        "PANM (Ours)": "PANM",
        # In mathematics it stands on TRM+RPE (Section 3.3).
        "panm-table-4:PANM (Ours)": "PANM on TRM",
        "panm-table-4:PANM (Ours)/math": "PANM on TRM+RPE",
        "panm-table-5:PANM (Ours)": "PANM on TRM",
        # Table 19: what the paper ran itself, and else what it cites
        "PANM TRM base (Ours)": "PANM on TRM",
        "PANM TRM + RPE base (Ours)": "PANM on TRM+RPE",
        "TRM (diamond)": "TRM",
        "TRM + RPE (diamond)": "TRM+RPE",
        "U. TRM (club)": "U. TRM",
        "U. TRM+ RPE (club)": "U. TRM+RPE",
        # Table 5, whose Transformer is not that of Tables 13 to 18
        "panm-table-5:Transformer": "TRM",
        "U. TRM + RPE": "U. TRM+RPE",
        "panm-table-6:PANM (Ours)": "PANM on BERT",
        "panm-table-7:Llama2-7B": "Pretrained Llama",
        "panm-table-7:Llama2-7B FT": "Llama",
        "panm-table-7:PANM (Ours)": "PANM on Llama",
        "panm-table-8:Llama2-7B": "Pretrained Llama",
        "panm-table-8:Llama2-7B FT": "Llama",
        "panm-table-8:PANM (Ours)": "PANM on Llama",
    },
    headlines=("panm-table-3",),
    columns={"drecall": "Dynamic Recall", "psort": "Priority Sort", "idsort": "ID Sort"},
    recounts="recounts:RECOUNTS",
    experiments=(
        *EXPERIMENTS,
        dyck_experiments.EXPERIMENT,
        *scan_experiments.EXPERIMENTS,
        mathematics_experiments.EXPERIMENT,
        *babi_experiments.EXPERIMENTS,
        translation_experiments.EXPERIMENT,
        squad_experiments.EXPERIMENT,
        *language_experiments.EXPERIMENTS,
    ),
    borrowed={
        "panm_summary": ("panm_algorithmic", ("panm-table-2",)),
        "panm_pointers": ("panm_algorithmic", ("panm-fig-2c", "panm-fig-2d")),
        "panm_chat_gpt": ("panm_algorithmic", ("panm-table-12",)),
        "panm_address_exposure": None,
        "panm_cost": None,
    },
    main="panm_algorithmic",
    further=("panm_readings", "mended"),
    metrics=("pointer_advances", "pointer_sharp", "partner_found"),
    shares="pointing:shares",
    speed=Speed(
        model="PANM",
        tasks=("panm_copy",),
        spec="experiments:timed",
        loop="plain_loop:PlainPANMLoop",
        goals={"2 cores": 4.0},
    ),
    pairs="transformer_speed:PAIRS",
    benchmark="overhead_page:benchmark",
    colours={
        "PANM": "#6054cc",
        "LSTM": "#786078",
        "Content Attention": "#f06060",
        "Location Attention": "#c03000",
        "Hybrid Attention": "#b48484",
        "Transformer": "#906060",
        "NTM": "#487818",
        "DNC": "#00843c",
        "Neural Stack": "#3c6ca8",
        "NRAM": "#8484f0",
        "PtrNet": "#a884b4",
        "ESBN": "#c0009c",
    },
    variants={
        "SRNN": "Neural Stack",  # another network with a stack
        "TRM": "Transformer",
        "TRM+RPE": "Location Attention",  # it knows where others stand, too
        "U.": "Hybrid Attention",  # universal
        "Llama": "Transformer",
        "Pretrained Llama": "LSTM",  # beside Llama, fine-tuned, it has a colour of its own
        "BERT": "Transformer",
    },
    arms={
        "fixed-base": Arm("fixed base", "the repaired equations without random base addresses"),
        "mended": Arm("mended", "the code with one line set right", ("□", "s", False, -0.28)),
        "contentless": Arm("without content", "the code without attention to content"),
        "one-way": Arm(
            "read one way", "the code with an encoder that reads from the beginning only"
        ),
        "undropped": Arm("no dropout", "the code without dropout"),
        "ten-bit": Arm("ten bits", "the code with addresses of ten bits"),
        "wide": Arm("256 units", "the code with 256 units"),
        "encoder": Arm(
            "as the encoder", "the repaired equations with SRNN below the memory, not beside it"
        ),
        "large": Arm("of 256 units", "the repaired equations with 256 units, as Appendix C says"),
    },
    words={
        **{"id": "ID", "llm": "LLM", "squad": "SQuAD"},
        **{"bigbench": "BIG-bench", "multi30k": "Multi30K"},
    },
    computed="computed:decided",
    quoted=("panm-020", "panm-025", "panm-027", "panm-028"),
    asked_first=("panm-020", "panm-021", "panm-025", "panm-026", "panm-027", "panm-028"),
    claims=CLAIMS,
    effects=EFFECTS,
    selection="The paper's rule looks at the first length beyond training, L+1, and not further.",
    known="by_tokens:known",
    near="by_tokens:near",
    passages=(
        *("findings:PASSAGES", "by_tokens:PASSAGES", "on_language:PASSAGES"),
        "contrasts:PASSAGES",
    ),
)
