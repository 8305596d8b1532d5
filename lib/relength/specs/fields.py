"""Fields that specs got after runs were recorded."""

from typing import Any

from pydantic import Field


def added(default: Any, *, before: Any, **constraints: Any) -> Any:
    """A pydantic field that older records lack: they had the value ``before``, as JSON has it."""
    return Field(default, json_schema_extra={"before": before}, **constraints)
