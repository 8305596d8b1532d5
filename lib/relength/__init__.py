"""ReLength: papers on length generalisation, trained again and judged from recorded runs."""

__version__ = "0.1.0"
