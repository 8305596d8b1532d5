"""Load records, margins, templates and digests of the code once, before kernels are forked.

What is wrong with records, each kernel says where it shows them.
"""

import gc
from contextlib import suppress

import scipy.stats  # noqa: F401 - loaded when first used, which every ledger does

from relength.errors import RelengthError
from relength.kept import code_digest
from relength.paths import RESULTS
from relength.report import html
from relength.runs.store import Store
from relength.specs.experiments import experiments
from relength.specs.margins import load_margins
from relength.training.provenance import code_fingerprint
from relength.verdicts import judged

with suppress(RelengthError, OSError):
    for found in experiments().values():
        judged.own_records(found, Store(RESULTS))
    load_margins()
html.compile_all()
code_digest(judged.code())
code_fingerprint()
gc.freeze()  # of a page of memory that the collector writes to, every kernel would get its own
