"""Messages to users: one exception, and warnings printed as notes."""

import warnings


class RelengthError(Exception):
    """A failure that names its cause and the way out in one sentence.

    The command line prints the sentence and exits with code 2; notebooks show it as the error of
    the cell.
    """


def warn_in_notes() -> None:
    """Print the warnings of this process as one line each, without the place in the code."""
    warnings.formatwarning = lambda message, *_: f"Note: {message}\n"
