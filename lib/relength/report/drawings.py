"""The ideas of the four papers, drawn by code: what their figures explain, in our own pictures.

One file per paper; each function gives an exhibit, drawn for wide and for narrow pages. Weights,
addresses and states in the drawings are computed from the papers' formulas wherever a caption says
so; the rest is schematic. Pages include them by the names of :data:`DRAWINGS`.
"""

from collections.abc import Callable

from relength.papers.dnc import drawings as dnc
from relength.papers.memreasoner import drawings as memreasoner
from relength.papers.mla import drawings as mla
from relength.papers.panm import drawings as panm
from relength.report.exhibits import Exhibit

DRAWINGS: dict[str, Callable[[], Exhibit]] = {
    "mla-mechanism": mla.location_attention,
    "panm-mechanism": panm.reading,
    "panm-addresses": panm.addresses,
    "dnc-mechanism": dnc.machine,
    "dnc-states": dnc.states,
    "memreasoner-mechanism": memreasoner.reading,
}
