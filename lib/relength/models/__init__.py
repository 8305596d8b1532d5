"""Every model by name. A new model is one file in this folder and one line here."""

from pydantic import BaseModel
from torch import nn

from relength.models.attentions import ATTENTIONS
from relength.models.content_attention import ContentAttention, ContentAttentionConfig
from relength.models.dnc import DNC, DNCConfig
from relength.models.esbn import ESBN, ESBNConfig
from relength.models.hybrid_attention import HybridAttention, HybridAttentionConfig
from relength.models.location_attention import LocationAttention, LocationAttentionConfig
from relength.models.lstm import LSTMBaseline, LSTMConfig
from relength.models.neural_stack import NeuralStack, NeuralStackConfig
from relength.models.nram import NRAM, NRAMConfig
from relength.models.ntm import NTM, NTMConfig
from relength.models.panm_tasks import AlgorithmicPANM, PANMConfig
from relength.models.pointer_network import PtrNet, PtrNetConfig
from relength.models.seq2seq import Seq2Seq, Seq2SeqConfig
from relength.models.transformer import Transformer, TransformerConfig

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
