"""Counts the weights of the paper's models; the counts are kept, so that a page builds no model."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from relength.models import MODELS
from relength.models.config import ModelConfig

KEPT = Path(__file__).with_name("weights.json")


def weights(config: ModelConfig, shape: Sequence[int]) -> int:
    """Count the weights that a model has on a task of this shape.

    What is not kept is counted. The tests count again what ``weights.json`` keeps.
    """
    return kept().get(name(config, shape)) or count(config, shape)


def count(config: ModelConfig, shape: Sequence[int]) -> int:
    """Build the model and count."""
    model = MODELS[config.name].module(config, *shape)
    return sum(weight.numel() for weight in model.parameters())


def name(config: ModelConfig, shape: Sequence[int]) -> str:
    """Everything that the number depends on."""
    return f"{config.model_dump_json()} {'x'.join(map(str, shape))}"


@cache
def kept() -> dict[str, int]:
    """{:func:`name`: weights}"""
    return json.loads(KEPT.read_text())
