"""Models that read lines of text and write an answer."""
