"""Recorded runs: the store, what is left to run, and how campaigns run it."""
