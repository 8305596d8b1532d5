"""The command line: its entry point, and its commands by name."""

import errno
import gc
import signal
import sys
from typing import NoReturn

from rich.markup import escape

from relength.cli import check, pages, show, speed, train
from relength.cli.app import app, stderr
from relength.cli.output import accept_any_encoding
from relength.errors import RelengthError, warn_in_notes
from relength.paths import check_checkout

COMMANDS = {  # in the order of the help
    "list": show.list_experiments,
    "plan": show.plan,
    "run": train.run,
    "status": show.status,
    "merge": train.merge,
    "render": pages.render,
    "refresh": pages.refresh,
    "claims": show.claims,
    "verify": check.verify,
    "bench": speed.bench,
}

FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)
IN_THE_WAY = (errno.EISDIR, errno.ENOTDIR, errno.EEXIST)  # a folder for a file, or the reverse

for name, command in COMMANDS.items():
    app.command(name)(command)


def main() -> NoReturn:
    """Entry point: what a user can mend is printed as one sentence, with exit code 2."""
    gc.disable()  # commands that train collect garbage again; the others end soon
    warn_in_notes()
    accept_any_encoding()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        check_checkout()
        app()
    except RelengthError as error:
        _refuse(str(error))
    except OSError as error:
        if error.errno not in (*FORBIDDEN, *IN_THE_WAY) or not error.filename:
            raise
        if error.errno in IN_THE_WAY:
            _refuse(f"{error.filename} is in the way ({error.strerror}): move it elsewhere.")
        _refuse(
            f"{error.filename} cannot be read or written ({error.strerror}): change its "
            "permissions, or work in a copy of the checkout."
        )
    sys.exit(0)


def _refuse(why: str) -> NoReturn:
    stderr.print("[bold red]Error:[/]", escape(why), soft_wrap=True, highlight=False)
    sys.exit(2)


if __name__ == "__main__":
    main()
