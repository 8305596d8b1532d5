"""Networks of the library transformers: Llama's of any size, or a pretrained one with adapters.

A causal language model whose scores are one map of its last vectors can be the pretrained one.
Adapters are put on the maps to queries and to values, as Appendix D.5 of PANM's paper says; where a
network has them in one map with its keys, as GPT-2, GPT-NeoX, Bloom and Falcon do, on the map that
peft names for this kind of network.
"""

from pickle import UnpicklingError
from typing import Any, NamedTuple

import torch
from torch import nn

from relength.errors import RelengthError
from relength.models.language.causal_configs import CausalConfig
from relength.tasks.base import EOS
from relength.tasks.pretrained import EXTRA, place, transformers

ADAPTED = ["q_proj", "v_proj"]  # Appendix D.5
# Fields of configurations that change scores after their map, and the values that do not.
UNSCALED = {"logit_scale": 1.0, "logits_scaling": 1.0, "final_logit_softcapping": None}


class Backbone(NamedTuple):
    """The parts of a causal language model.

    network  tokens to vectors
    scoring  the layer that scores tokens
    width    of a vector
    end      the token that ends an answer
    """

    network: nn.Module
    scoring: nn.Module
    width: int
    end: int


def loaded(kind: str, name: str, wanted: str, **more: Any) -> nn.Module:
    """A pretrained network that lies on this machine, by a class of transformers, in float32.

    Many weights are published in half of that, in which the rest of a model is not.

    wanted  what it should be, for the error
    more    arguments of the class

    Raises RelengthError where it is not here, cannot be read, or lacks some of the weights, which
    the library would draw at random.
    """
    library, folder = transformers(), place(name)
    from safetensors import SafetensorError

    damaged = (OSError, ValueError, RuntimeError, EOFError, UnpicklingError, SafetensorError)
    try:
        network, found = getattr(library, kind).from_pretrained(
            folder, local_files_only=True, dtype=torch.float32, output_loading_info=True, **more
        )
    except damaged as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise RelengthError(
            f"The pretrained model {name} cannot be read ({said}): fetch it again, or choose "
            f"{wanted}."
        ) from None
    if found["missing_keys"]:
        raise RelengthError(
            f"The pretrained model {name} has no weights {min(found['missing_keys'])}: fetch it "
            f"again, or choose {wanted} that has all of its parts."
        )
    if any(not weight.isfinite().all() for weight in network.state_dict().values()):
        raise RelengthError(f"The pretrained model {name} has weights that are no numbers: fetch "
                            "it again.")  # fmt: skip
    return network


def check_causal(network: nn.Module, name: str) -> None:
    """Raise RelengthError if the scores after a token depend on the next one, as a BERT's do."""
    tokens = torch.tensor([[0, 0], [0, 1]])
    with torch.no_grad():
        first, second = network(input_ids=tokens).logits[:, 0]
    if not torch.allclose(first, second, rtol=1e-4, atol=1e-5):
        raise RelengthError(
            f"The pretrained model {name} reads ahead of what it writes: choose a causal language "
            "model."
        )


def backbone(config: CausalConfig, vocabulary_size: int) -> Backbone:
    """The network that a configuration asks for, with the weights that it has before a run."""
    whole = _pretrained(config) if config.weights else _llama(config, vocabulary_size)
    end = whole.config.eos_token_id
    if isinstance(end, list):  # some models have several; the first ends a text
        end = end[0]
    return Backbone(
        whole.get_decoder(),
        whole.get_output_embeddings(),
        whole.get_output_embeddings().in_features,
        EOS if end is None else end,
    )


def _llama(config: CausalConfig, vocabulary_size: int) -> nn.Module:
    library = transformers()
    return library.LlamaForCausalLM(
        library.LlamaConfig(
            vocab_size=vocabulary_size,
            hidden_size=config.width,
            intermediate_size=config.inner_size,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            max_position_embeddings=config.positions,
            pad_token_id=None,
            bos_token_id=None,
            eos_token_id=None,
        )
    )


def _pretrained(config: CausalConfig) -> nn.Module:
    """A pretrained model whose only trained weights are adapters of its queries and values."""
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError:
        raise RelengthError(
            f"Adapters of a pretrained model need the library peft: {EXTRA}."
        ) from None
    whole = loaded("AutoModelForCausalLM", config.weights, "a causal language model")
    whole.requires_grad_(False)
    for field, neutral in UNSCALED.items():
        if getattr(whole.config, field, None) not in (None, neutral):
            raise RelengthError(
                f"{config.weights} changes its scores by {field} after their last map, which is "
                "not built here: choose another causal language model."
            )
    maps = adapted_maps(whole, config.weights)
    check_causal(whole, config.weights)
    return inject_adapter_in_model(
        LoraConfig(
            r=config.lora_rank,
            lora_alpha=config.lora_alpha,
            target_modules=maps,
            fan_in_fan_out=_transposed(whole, maps),
            lora_dropout=0.0,
        ),
        whole,
    )


def adapted_maps(whole: nn.Module, name: str) -> list[str]:
    """The names of the maps of a network that get adapters.

    Raises RelengthError where it has none of those that are known.
    """
    from peft.utils.constants import TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING as KNOWN

    there = {path.rpartition(".")[2] for path, _ in whole.named_modules()}
    kind = whole.config.model_type
    for maps in (ADAPTED, KNOWN.get(kind, [])):
        if maps and there.issuperset(maps):
            return list(maps)
    raise RelengthError(
        f"{name} has no layers {' and '.join(ADAPTED)}, and peft knows no others to adapt in a "
        f"model of the kind {kind}: choose a model of another kind, such as Llama's."
    )


def _transposed(whole: nn.Module, maps: list[str]) -> bool:
    """Tell whether these maps keep their weights as (inputs, outputs), as GPT-2's do."""
    from transformers.pytorch_utils import Conv1D

    return any(
        isinstance(part, Conv1D)
        for path, part in whole.named_modules()
        if path.rpartition(".")[2] in maps
    )
