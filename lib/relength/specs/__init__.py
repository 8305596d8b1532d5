"""Define what determines a run, and find tasks, models and papers by name."""
