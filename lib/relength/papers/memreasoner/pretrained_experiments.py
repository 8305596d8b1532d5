"""The pretrained networks of "MemReasoner", which runs of scale paper are made of.

Source: Sections 4.1 and 4.2, Appendices A.4 and A.5; sizes of a code from Larimar's public code.
None of them is downloaded by a run: they have to lie on the machine.
"""

from typing import Any

from relength.models.language.configs import LARGER_QWEN, USUAL_DECODER
from relength.specs.spec import RunSpec, Scale, make_spec

BERT = "google-bert/bert-large-cased"  # cased, as in Larimar
GPTJ = "EleutherAI/gpt-j-6b"
QWEN = ("Qwen/Qwen2.5-0.5B", LARGER_QWEN)
CODE = {"latent_size": 768}  # D
MEMORY = {"slots": 512}  # K
# What has no pretrained form here, and why.
REFUSED = {
    "RMT": "RMT on GPT-2 with its memory tokens",
    "Mamba": "Mamba of 0.13 or 1.4 billion weights",
    "MemN2N": "none; of MemN2N the paper gives no size and no training",
    "MemReasoner copying": "a decoder of our own that copies, of which the paper has none",
    "MemReasoner windows": "windows of words as other text, of which the paper has none",
}


def run(
    task: dict[str, Any],
    model: dict[str, Any],
    training: dict[str, Any],
    scale: Scale,
    seed: int,
) -> RunSpec:
    """A run of the protocol for facts; at scale paper with the networks that the paper has."""
    of_task, of_model = networks(model) if scale == "paper" else ({}, {})
    return make_spec(
        task=task | of_task,
        model=of_model | model,
        training={"name": "facts", **training},
        scale=scale,
        seed=seed,
    )


def networks(model: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields of a task and of a model that name the networks of scale paper."""
    if why := REFUSED.get(model["name"]):
        return {"networks": why}, {}
    named = {"decoder": model.get("decoder", USUAL_DECODER)}
    if model["name"] == "GPT":
        return named, named
    named |= {"encoder": BERT}
    keeps = MEMORY if model["name"] != "MemReasoner without memory" else {}
    return named, named | CODE | keeps
