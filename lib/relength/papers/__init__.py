"""The reproduced papers: one folder each, with one Paper object in it."""
