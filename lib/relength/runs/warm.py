"""What workers are forked from has loaded this module: PyTorch and Numba once, not in each worker.

That process leaves signals to the campaign, as its workers do.
"""

import gc
import signal

from relength.kernels import jit  # noqa: F401
from relength.runs import execute  # noqa: F401

signal.signal(signal.SIGTERM, signal.SIG_IGN)
gc.freeze()  # of a page of memory that the collector writes to, every worker would get its own
