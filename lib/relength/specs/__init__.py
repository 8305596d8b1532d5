"""What determines a run, and registries that find tasks, models and papers by name."""
