"""No training: a model is tested with its first weights."""

from typing import Literal

from pydantic import Field

from relength.training.protocols.fixed_steps import FixedSteps


class Untrained(FixedSteps):
    """One step at rate 0, which moves no weight; then the tests.

    For pretrained models that are tested as published. The step is there for its loss: freshness
    compares it, as of any run.
    """

    name: Literal["untrained"] = "untrained"
    steps: Literal[1] = 1
    validate_every: Literal[1] = 1
    batch_size: int = Field(8, gt=0)
    learning_rate: float = Field(0.0, ge=0, le=0, description="no weight moves")
