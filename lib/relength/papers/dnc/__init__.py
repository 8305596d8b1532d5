"""State-Space Constraints Improve the Generalization of the Differentiable Neural Computer."""

from relength.papers.dnc.experiments import EXPERIMENTS, GATES, PORTRAITS
from relength.specs.paper import Paper

PAPER = Paper(
    name="dnc",
    title="State-space constraints for the DNC",
    short="DNC",
    idea="Keep the state of a neural computer's controller small or close to itself, so that "
    "long inputs lead it nowhere new.",
    cited="ofner2021statespace",
    task_names={
        name: f"dnc_{name}"
        for name in ("sort", "copy", "differentiation", "shift", "add", "logic", "search")
    },
    headlines=("dnc-table-2", "dnc-table-5"),
    recounts="recounts:RECOUNTS",
    experiments=EXPERIMENTS,
    borrowed={
        "dnc_memory_extension": ("dnc_generalization", ("dnc-fig-2", "dnc-table-5", "dnc-table-6")),
        "dnc_statistics": ("dnc_generalization", ("dnc-table-4", "dnc-table-7")),
        "dnc_state_space": ("dnc_generalization", tuple(PORTRAITS)),
        "dnc_memory_modes": ("dnc_generalization", tuple(GATES)),
    },
    metrics=(
        *("state_returns", "state_return_time", "state_symbols", "state_neighbours"),
        *("state_ends", "state_scatter", "state_moves", "state_returns_writing"),
        *("write_gate_reading", "write_gate_writing", "read_gate_reading", "read_gate_writing"),
        *("write_mixed", "modes_mixed", "write_by_phase", "read_by_phase", "gates_peaked"),
        *("loops_accompany", "peaks_accompany", "perfect_and_settles"),
        *("learned", "generalises", "poor", "perfect", "memory_gain", "memory_keeps"),
    ),
    shares="states:shares",
    pairs="step_speed:PAIRS",
    colours={
        "STATEFUL-BASELINE": "#849c00",
        "STATELESS-BASELINE": "#b46048",
        "COMPR": "#9000fc",
        "REG": "#6c90e4",
        "COMPR&REG": "#cc0090",
    },
    variants={
        "van. LSTM + COMPR": "COMPR",
        "van. LSTM + REG": "REG",
        "van. LSTM + COMPR&REG": "COMPR&REG",
        "Peephole LSTM": "STATEFUL-BASELINE",
    },
    quoted=("dnc-001", "dnc-002", "dnc-028", "dnc-043"),
    asked_first=("dnc-001", "dnc-007", "dnc-019", "dnc-025", "dnc-041"),
    claims={
        "findings_dnc_claims": ("dnc-001", "dnc-007", "dnc-040", "dnc-041"),
        "findings_dnc_stateless": ("dnc-019", "dnc-021", "dnc-042"),
        "findings_dnc_memory": ("dnc-028", "dnc-032", "dnc-036"),
        "findings_dnc_pictures": ("dnc-043", "dnc-044", "dnc-045", "dnc-046", "dnc-052"),
        "findings_dnc_modes": ("dnc-060", "dnc-061", "dnc-062", "dnc-067"),
        "findings_dnc_peephole": ("dnc-017", "dnc-018"),
    },
    passages=("findings:PASSAGES",),
    selection="The paper's rule looks at length 30, twice as far as training, and not further.",
)
