"""Every model by name. A new model is a configuration, a module in another file and one line here.

Configurations are imported with this registry and import no torch; a module is imported when a
model is built.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from relength.models.baselines import configs as baselines
from relength.models.config import ModelConfig
from relength.models.language import baseline_configs as readers
from relength.models.language import causal_configs as causal
from relength.models.language import configs as language
from relength.models.language import span_configs as spans
from relength.models.language.variant_configs import (
    CopyingConfig,
    EachHopConfig,
    VariantConfig,
    WindowsConfig,
    WithoutMemoryConfig,
)
from relength.models.memory import configs as memory
from relength.models.pointers.configs import PANMConfig
from relength.models.pointers.stack_configs import StackPANMConfig
from relength.models.pointers.transformer_configs import BACKBONES, TransformerPANMConfig
from relength.models.seq2seq.attentions import ATTENTIONS
from relength.models.seq2seq.configs import Seq2SeqConfig
from relength.models.transformers.configs import VARIANTS, TransformerSeq2SeqConfig

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Model:
    """The two halves of a model.

    config  its sizes and readings
    path    where its module is: file and class
    """

    config: type[ModelConfig]
    path: str

    @property
    def module(self) -> "type[nn.Module]":
        """The class that is built from the configuration and the sizes of a task."""
        file, name = self.path.rsplit(".", 1)
        return getattr(import_module(file), name)


MODELS: dict[str, Model] = {
    **dict.fromkeys(
        ATTENTIONS, Model(Seq2SeqConfig, "relength.models.seq2seq.encoder_decoder.Seq2Seq")
    ),
    "PANM": Model(PANMConfig, "relength.models.pointers.panm_tasks.AlgorithmicPANM"),
    "LSTM": Model(baselines.LSTMConfig, "relength.models.baselines.lstm.LSTMBaseline"),
    "Location Attention": Model(
        baselines.LocationAttentionConfig,
        "relength.models.baselines.location_attention.LocationAttention",
    ),
    "Content Attention": Model(
        baselines.ContentAttentionConfig,
        "relength.models.baselines.content_attention.ContentAttention",
    ),
    "Hybrid Attention": Model(
        baselines.HybridAttentionConfig,
        "relength.models.baselines.hybrid_attention.HybridAttention",
    ),
    "Transformer": Model(
        baselines.TransformerConfig,
        "relength.models.baselines.transformer.Transformer",
    ),
    "NTM": Model(memory.NTMConfig, "relength.models.memory.ntm.NTM"),
    "DNC": Model(memory.DNCConfig, "relength.models.memory.dnc.DNC"),
    "Constrained DNC": Model(
        memory.ConstrainedDNCConfig,
        "relength.models.memory.constrained.ConstrainedDNC",
    ),
    "Neural Stack": Model(
        memory.NeuralStackConfig,
        "relength.models.memory.neural_stack.NeuralStack",
    ),
    "PtrNet": Model(baselines.PtrNetConfig, "relength.models.baselines.pointer_network.PtrNet"),
    "NRAM": Model(memory.NRAMConfig, "relength.models.memory.nram.NRAM"),
    "SRNN": Model(memory.SRNNConfig, "relength.models.memory.stack_rnn.SRNN"),
    "PANM on SRNN": Model(StackPANMConfig, "relength.models.pointers.panm_stack.StackPANM"),
    **dict.fromkeys(
        VARIANTS,
        Model(
            TransformerSeq2SeqConfig,
            "relength.models.transformers.encoder_decoder.TransformerSeq2Seq",
        ),
    ),
    **dict.fromkeys(
        BACKBONES,
        Model(TransformerPANMConfig, "relength.models.pointers.panm_transformer.TransformerPANM"),
    ),
    "ESBN": Model(memory.ESBNConfig, "relength.models.memory.esbn.ESBN"),
    "MemReasoner": Model(
        language.MemReasonerConfig, "relength.models.language.memreasoner.MemReasoner"
    ),
    "GPT": Model(language.GPTConfig, "relength.models.language.gpt.GPT"),
    "MemReasoner variant": Model(VariantConfig, "relength.models.language.variants.Variant"),
    "MemReasoner without memory": Model(
        WithoutMemoryConfig, "relength.models.language.without_memory.WithoutMemory"
    ),
    "MemReasoner copying": Model(CopyingConfig, "relength.models.language.variants.Copying"),
    "MemReasoner windows": Model(WindowsConfig, "relength.models.language.memreasoner.MemReasoner"),
    "MemReasoner each hop": Model(EachHopConfig, "relength.models.language.variants.EachHop"),
    "Llama": Model(causal.CausalConfig, "relength.models.language.causal.CausalModel"),
    "Pretrained Llama": Model(
        causal.PretrainedConfig, "relength.models.language.causal.CausalModel"
    ),
    "BERT": Model(spans.BertConfig, "relength.models.language.spans.SpanModel"),
    "PANM on BERT": Model(spans.BertPANMConfig, "relength.models.language.spans.SpanPANM"),
    "PANM on Llama": Model(causal.CausalPANMConfig, "relength.models.language.causal.CausalPANM"),
    "Larimar": Model(readers.LarimarConfig, "relength.models.language.larimar.Larimar"),
    "RMT": Model(readers.RMTConfig, "relength.models.language.rmt.RMT"),
    "Mamba": Model(readers.MambaConfig, "relength.models.language.mamba.Mamba"),
    "MemN2N": Model(readers.MemN2NConfig, "relength.models.language.memn2n.MemN2N"),
}
