"""Imported before kernels are forked: the project's records, and which run is whose, are read once.

What is wrong with records, each kernel says where it shows them.
"""

import gc
from contextlib import suppress

from relength.errors import RelengthError
from relength.paths import RESULTS
from relength.runs.store import Store
from relength.specs.experiments import experiments
from relength.verdicts.judged import own_records

with suppress(RelengthError, OSError):
    for found in experiments().values():
        own_records(found, Store(RESULTS))
gc.freeze()  # of a page of memory that the collector writes to, every kernel would get its own
