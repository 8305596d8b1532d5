"""Print for commands: in any encoding, on a terminal of any width, and into a pipe."""

import codecs
import io
import sys
import textwrap
import unicodedata
from collections.abc import Sequence

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from relength.cli.app import console

# Signs that Unicode does not decompose into letters and marks of ASCII.
PLAIN = {
    "–": "-",
    "—": "-",
    "−": "-",
    "×": "x",
    "·": ".",
    "→": "->",
    "≥": ">=",
    "≤": "<=",
    "±": "+-",
}


def accept_any_encoding() -> None:
    """Print what the encoding of this process's output lacks as the nearest plain signs."""
    codecs.register_error("relength.plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # others take any text
            stream.reconfigure(errors="relength.plain")


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Replace what cannot be encoded; a sign that none is near becomes ``?``."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    return "".join(PLAIN.get(sign) or _decomposed(sign) or "?" for sign in signs), error.end


def _decomposed(sign: str) -> str:
    return unicodedata.normalize("NFKD", sign).encode("ascii", "ignore").decode()


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table without cutting a word, so that every name can be copied and found.

    Into a pipe each row is one line. On a terminal that is too narrow for the longest words side by
    side each row is a block below the cell of the first column.
    """
    columns = list(zip(headers, *rows, strict=True))
    borders = 3 * len(columns) + 1
    longest = [max(map(cell_len, column)) for column in columns]
    words = [max(cell_len(word) for word in " ".join(column).split()) for column in columns]
    if not console.is_terminal or sum(longest) + borders <= console.width:
        _print_columns(headers, rows, longest)
    elif sum(words) + borders <= console.width:
        _print_columns(headers, rows, _shared(console.width - borders, words, longest))
    else:
        indented = textwrap.TextWrapper(
            width=console.width,
            initial_indent=4 * " ",
            subsequent_indent=8 * " ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for name, *cells in rows:
            lines = map("{}: {}".format, headers[1:], cells)
            block = "\n".join([name, *map(indented.fill, lines)])
            console.print(Text(block), soft_wrap=True)


def _print_columns(
    headers: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]
) -> None:
    table = Table(width=sum(widths) + 3 * len(widths) + 1)
    for header, width in zip(headers, widths, strict=True):
        table.add_column(header, width=width)
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table, crop=False)


def _shared(room: int, least: Sequence[int], most: Sequence[int]) -> list[int]:
    """Widths of columns that fill the room: the narrow ones whole, the wide ones alike."""
    widths, room = list(least), room - sum(least)
    order = sorted(range(len(least)), key=lambda i: most[i] - least[i])
    for later, i in enumerate(order):
        more = min(most[i] - least[i], room // (len(order) - later))
        widths[i], room = widths[i] + more, room - more
    return widths
