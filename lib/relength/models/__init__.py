"""Every model by name. A new model is one file in this folder and one line here."""

from relength.models.seq2seq import Seq2Seq, Seq2SeqConfig

MODELS = {
    name: (Seq2SeqConfig, Seq2Seq)
    for name in ("Content", "Relative", "Bi-Relative", "LocAttn", "OneStepAttn", "MonoAttn")
}
