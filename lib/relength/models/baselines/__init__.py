"""Recurrent networks, attention and Transformers that the memory models are compared with."""
