"""Fast forms of recurrences, attention and memory steps; a model names the kernel that equals its
plain form.
"""
