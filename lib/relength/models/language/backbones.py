"""Networks of the library transformers: Llama's of any size, or a pretrained one with adapters."""

from typing import NamedTuple

from torch import nn

from relength.errors import RelengthError
from relength.models.language.causal_configs import CausalConfig
from relength.tasks.base import EOS
from relength.tasks.pretrained import EXTRA, place, transformers

ADAPTED = ["q_proj", "v_proj"]  # Appendix D.5


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


def backbone(config: CausalConfig, vocabulary_size: int) -> Backbone:
    """The network that a configuration asks for, with the weights that it has before a run."""
    whole = _pretrained(config) if config.weights else _llama(config, vocabulary_size)
    end = whole.config.eos_token_id
    return Backbone(
        whole.get_decoder(),
        whole.get_output_embeddings(),
        whole.config.hidden_size,
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
    library = transformers()
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError:
        raise RelengthError(
            f"Adapters of a pretrained model need the library peft: {EXTRA}."
        ) from None
    folder = place(config.weights)
    try:
        whole = library.AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError) as error:
        said = str(error).splitlines()[0]
        raise RelengthError(
            f"The pretrained model {config.weights} cannot be read ({said}): fetch it again, or "
            "choose a causal language model."
        ) from None
    adapters = LoraConfig(
        r=config.lora_rank, lora_alpha=config.lora_alpha, target_modules=ADAPTED, lora_dropout=0.0
    )
    whole.requires_grad_(False)
    try:
        whole = inject_adapter_in_model(adapters, whole)
    except ValueError:
        raise RelengthError(
            f"{config.weights} has no layers {' and '.join(ADAPTED)} to adapt: choose a model of "
            "Llama's kind."
        ) from None
    return whole
