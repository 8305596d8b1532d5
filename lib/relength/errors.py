"""The one exception a user is meant to read."""


class RelengthError(Exception):
    """A failure that names its cause and the way out in one sentence.

    The command line prints the sentence and exits with code 2; notebooks show it as the error of
    the cell.
    """
