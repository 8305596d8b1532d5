"""From claims and recorded runs to verdicts."""
