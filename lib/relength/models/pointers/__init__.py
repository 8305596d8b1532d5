"""Pointer-Augmented Neural Memory: addresses, pointers, and the two modes of reading."""
