"""Fast forms of recurrences, attention, memory steps and a loss; a model names the kernel that
equals its plain form.
"""
