"""Notebooks, pages and editions: from recorded runs to the built book."""
