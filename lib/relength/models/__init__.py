"""Every model by name. A new model is one file in this folder and one line here."""

from pydantic import BaseModel
from torch import nn

from relength.models.baselines.content_attention import ContentAttention, ContentAttentionConfig
from relength.models.baselines.hybrid_attention import HybridAttention, HybridAttentionConfig
from relength.models.baselines.location_attention import LocationAttention, LocationAttentionConfig
from relength.models.baselines.lstm import LSTMBaseline, LSTMConfig
from relength.models.baselines.pointer_network import PtrNet, PtrNetConfig
from relength.models.baselines.transformer import Transformer, TransformerConfig
from relength.models.memory.dnc import DNC, DNCConfig
from relength.models.memory.esbn import ESBN, ESBNConfig
from relength.models.memory.neural_stack import NeuralStack, NeuralStackConfig
from relength.models.memory.nram import NRAM, NRAMConfig
from relength.models.memory.ntm import NTM, NTMConfig
from relength.models.pointers.panm_tasks import AlgorithmicPANM, PANMConfig
from relength.models.seq2seq.attentions import ATTENTIONS
from relength.models.seq2seq.encoder_decoder import Seq2Seq, Seq2SeqConfig

MODELS: dict[str, tuple[type[BaseModel], type[nn.Module]]] = {
    **dict.fromkeys(ATTENTIONS, (Seq2SeqConfig, Seq2Seq)),
    "PANM": (PANMConfig, AlgorithmicPANM),
    "LSTM": (LSTMConfig, LSTMBaseline),
    "Location Attention": (LocationAttentionConfig, LocationAttention),
    "Content Attention": (ContentAttentionConfig, ContentAttention),
    "Hybrid Attention": (HybridAttentionConfig, HybridAttention),
    "Transformer": (TransformerConfig, Transformer),
    "NTM": (NTMConfig, NTM),
    "DNC": (DNCConfig, DNC),
    "Neural Stack": (NeuralStackConfig, NeuralStack),
    "PtrNet": (PtrNetConfig, PtrNet),
    "NRAM": (NRAMConfig, NRAM),
    "ESBN": (ESBNConfig, ESBN),
}
