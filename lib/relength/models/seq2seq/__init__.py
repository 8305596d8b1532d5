"""Encoder and decoder with attention over positions (Monotonic Location Attention)."""
