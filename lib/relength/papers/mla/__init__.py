"""Monotonic Location Attention for Length Generalization (Ray Chowdhury and Caragea, 2023)."""

from relength.papers.mla.experiments import EXPERIMENTS
from relength.specs.paper import Front, Paper, Speed

CLAIMS = {
    "length_content": ("mla-003",),
    "length_relative": ("mla-004", "mla-005", "mla-006", "mla-054"),
    "length_reversed": ("mla-001", "mla-002"),
    "length_end_of_sequence": ("mla-019", "mla-060"),
    "length_monotonic": ("mla-010", "mla-011", "mla-012", "mla-017"),
    "length_location": ("mla-007", "mla-009", "mla-052"),
    "findings_mla_direction": ("mla-001", "mla-005", "mla-004"),
    "findings_mla_distance": ("mla-002", "mla-006", "mla-054"),
    "findings_mla_content": ("mla-003", "mla-049"),
    "findings_mla_walking": ("mla-010", "mla-011", "mla-012", "mla-013", "mla-014", "mla-015"),
    "findings_mla_motion": ("mla-055", "mla-056", "mla-057", "mla-058", "mla-059"),
    "findings_mla_freedom": (
        *("mla-007", "mla-008", "mla-009", "mla-017", "mla-024"),
        *("mla-025", "mla-026", "mla-028", "mla-063"),
    ),
    "findings_mla_best": ("mla-016", "mla-018", "mla-052"),
    "findings_mla_end": ("mla-019", "mla-060"),
    "findings_mla_failures": ("mla-050", "mla-051"),
}
EFFECTS = {
    "findings_mla_readings": {
        "Steepness of OneStepAttn's step": "OneStepAttn: steepness and clamp; -Step 2: "
        "steepness alone",
        "Which branch MonoAttn's gate is on": "MonoAttn: gate, clamp, steepness",
        "Clamp of the focus": "clamp alone",
        "The gate of the mixture": "the mixture's gate alone",
        "Two rows for one function": "RMonoAttn against MonoAttn, as in the text",
    },
    "findings_mla_selection": {
        "In-distribution validation": "chosen on longer samples, not on known lengths",
        "Which epoch is tested": "chosen, and not the last epoch",
    },
    "findings_mla_stopping": {"How long decoding goes on": "the model ends its output, and not we"},
    "findings_mla_scale": {"Training budget at scale reduced": "more training"},
}

PAPER = Paper(
    name="mla",
    title="Monotonic Location Attention",
    short="MLA",
    idea="Attend by *where* rather than *what*: a spot of light on a ruler that only moves "
    "forward, one step or several at a time.",
    cited="raychowdhury2023monotonic",
    recounts="recounts:RECOUNTS",
    experiments=EXPERIMENTS,
    main="mla_table2",
    metrics=("focus_forward", "focus_single", "focus_next", "focus_waits", "end_right"),
    shares="focusing:shares",
    speed=Speed(
        model="OneStepAttn",
        tasks=("copy", "recopy", "inv_recopy"),
        spec="experiments:timed",
        loop="plain_loop:PlainLoop",
        goals={"one core": 2.0, "2 cores": 3.5},
    ),
    colours={
        "Content": "#7d8791",
        "Relative": "#d17d08",
        "LocAttn": "#bd4ab8",
        "Bi-Relative": "#cf4632",
        "OneStepAttn": "#4d76f2",
        "MonoAttn": "#16a661",
    },
    variants={
        "RMonoAttn": "MonoAttn",
        "Bi-ROPE": "Bi-Relative",
        "-Step": "OneStepAttn",
        "-Sigmoid": "OneStepAttn",
    },
    nicknames={
        "OneStepAttn": "one step attention",
        "MonoAttn": "monotonic attention",
        "LocAttn": "location attention",
        "Content": "content attention",
        "Relative": "relative attention",
        "Bi-Relative": "bidirectional relative attention",
    },
    words={
        **{"recopy": "ReCopy", "dedupe": "DeDupe", "posretrieve": "PosRetrieve"},
        **{"scan": "SCAN", "cfq": "CFQ"},
    },
    task_notes={
        "copy": "one step forward at a time",
        "recopy": "wait, then one step forward",
        "inv_recopy": "jump ahead, up to five at once",
    },
    asked={
        "recopy": "ReCopy asks a focus to wait.",
        "inv_recopy": "Inv ReCopy asks a focus to jump.",
        "dedupe": "DeDupe asks a focus to jump to the next run of equal digits.",
        "posretrieve": "PosRetrieve asks a focus to go back and forth.",
    },
    spans="spans:answer_spans",
    quoted=("mla-001", "mla-002", "mla-003", "mla-015", "mla-016"),
    asked_first=(
        *("mla-010", "mla-011", "mla-012", "mla-014", "mla-017", "mla-016", "mla-052"),
        *("mla-001", "mla-002", "mla-003", "mla-007", "mla-024", "mla-055", "mla-057"),
    ),
    claims=CLAIMS,
    effects=EFFECTS,
    selection="The paper's rule looks at a development set that reaches up to the first length "
    "beyond training, and not further.",
    passages=("findings:PASSAGES",),
    front=Front(
        experiment="mla_table2",
        artifact="mla-table-2",
        tasks=("copy", "recopy", "inv_recopy"),
        claim="mla-table-2/OneStepAttn/recopy/100",
        questions=(
            "OneStep attention solves ReCopy at length 100",
            "MonoAttn on Inv ReCopy",
            "which model solves all tasks?",
        ),
    ),
)
