"""Sizes of what a run records beside its accuracies."""

PARTS = 10  # of a target, in which first errors are counted
TRACED = 16  # samples of a test whose pointers are recorded
