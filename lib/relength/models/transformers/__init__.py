"""Transformers that read and write tokens."""
