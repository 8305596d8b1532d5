"""Our measured cells beside what is known elsewhere: boxes on the page about the literature.

Each box shows claims of the ledger with today's verdict and what was seen, so that the page states
no result of ours in words of its own.
"""

from functools import partial

from relength.report.markdown import badge, grid, plain
from relength.report.scoreboard import Survey

# {name of the box: claims shown in it}; a claim that no file has yet is left out.
BOXES = {
    "content": ("mla-003",),
    "relative": ("mla-004", "mla-005", "mla-006", "mla-054"),
    "reversed": ("mla-001", "mla-002"),
    "end_of_sequence": ("mla-019",),
    "monotonic": ("mla-010", "mla-011", "mla-012", "mla-017"),
    "location": ("mla-007", "mla-009", "mla-052"),
}


def box(name: str, survey: Survey) -> str:
    """The claims of one box in short."""
    rows = survey.ledger.fillna({"scale": ""}).set_index("claim")
    shown = [rows.loc[claim] for claim in BOXES[name] if claim in rows.index]
    body = grid(
        ("claim", "verdict", "our runs"),
        (
            (
                f"{plain(row.statement)} {{ref}}`{row.name} <claim-{row.name}>`",
                badge(row.label),
                plain(row.seen) + (f" ({row.scale})" if row.scale else ""),
            )
            for row in shown
        ),
    )
    return f":::{{container}} measured\n**Measured here**\n\n{body}\n:::\n"


PASSAGES = {f"length_{name}": partial(box, name) for name in BOXES}
