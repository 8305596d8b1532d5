"""The form that all notebooks share, as tests check it."""

import ast
import re
from itertools import pairwise

from nbformat import NotebookNode

from relength.book.notebook import CHECKED, Parameters, _assigned

SECTIONS = (
    *("Claim", "The paper's numbers", "Method", "Parameters", "Runs"),
    *("Tables and figures", "Verdict", "Deviations and cost"),
)
# What nbval and papermill take as a wish to be left alone; one that is left alone proves nothing.
OPTS_OUT = re.compile(r"nbval[-_](skip|ignore|raises)|raises-exception", re.IGNORECASE)
LONGEST_FUNCTION = 6  # lines; anything longer belongs into the library


def problems(notebook: NotebookNode) -> list[str]:
    """List where a notebook departs from the form that all share; empty when it does not."""
    found = []
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    sections = [
        line.removeprefix("## ")
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        for line in cell.source.splitlines()
        if line.startswith("## ")
    ]
    if tuple(sections) != SECTIONS:
        found.append(
            f"its sections are {', '.join(sections)}; they should be {', '.join(SECTIONS)}"
        )
    declared = [cell for cell in code if "parameters" in cell.metadata.get("tags", [])]
    if len(declared) != 1:
        found.append(f"it has {len(declared)} cells tagged 'parameters' instead of one")
    elif missing := set(Parameters.model_fields) - set(_assigned([declared[0].source])):
        found.append(f"its parameters cell lacks {', '.join(sorted(missing))}")
    numbers = [int(n) for cell in code for n in re.findall(r"\bnumber=(\d+)", cell.source)]
    if any(second <= first for first, second in pairwise(numbers)):
        found.append(f"its figures have the numbers {numbers}, which do not go up")
    for number, cell in enumerate(code, start=1):
        found += [f"code cell {number} {complaint}" for complaint in _cell_problems(cell)]
    return found


def _cell_problems(cell: NotebookNode) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(cell.source)):
        if isinstance(node, ast.ClassDef):
            found.append(f"defines class {node.name}: classes belong into the library")
        if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= LONGEST_FUNCTION:
            found.append(f"has the function {node.name} of more than {LONGEST_FUNCTION} lines")
    tags = cell.metadata.get("tags", [])
    checked = CHECKED in tags
    if OPTS_OUT.search("\n".join([cell.source, *tags])):
        found.append("asks not to be run or not to be compared")
    if checked and (not cell.outputs or cell.execution_count is None):
        found.append(
            "is to be compared, but has no stored output or count: run "
            "relength.book.notebook.refresh"
        )
    if checked and not all(map(_is_text, cell.outputs)):
        found.append(
            "is to be compared, but shows more than text: pictures are never compared, and neither "
            "they nor HTML can be read in a diff"
        )
    if not checked and (cell.outputs or cell.execution_count is not None):
        found.append("keeps outputs that nobody compares: run relength.book.notebook.refresh")
    return found


def _is_text(output: NotebookNode) -> bool:
    if output.output_type == "stream":
        return output.name == "stdout"
    return set(output.get("data", {"": ""})) == {"text/plain"}
