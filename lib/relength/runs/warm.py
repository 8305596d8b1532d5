"""Prepare the process that workers are forked from. Nothing else imports this.

It loads PyTorch and Numba, which takes seconds, once for all workers, and notes which code it has
loaded, as that is what their records name. It leaves signals to the campaign, as workers do.
"""

import gc
import signal

for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)

from relength.kernels import jit  # noqa: E402, F401
from relength.runs import execute  # noqa: E402, F401
from relength.training import provenance  # noqa: E402

provenance.commit(), provenance.code_fingerprint()
gc.freeze()  # of a page of memory that the collector writes to, every worker would get its own
