"""Every run as a dot, none hidden behind another, and their median as a bar.

seaborn draws the dots. It is imported with the first of them, so that pages without dots need no
time for it.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from relength.report.style import LIGHT


def swarm(
    axes: Axes,
    values: ArrayLike,
    places: ArrayLike,
    shades: str | Sequence[str],
    *,
    size: float,
    orient: Literal["h", "v"] = "h",
    bar: float | None = 0.34,
    **look,
) -> None:
    """Dots at their values; those that would touch lie side by side around their row's place.

    places  the row of each dot, or its column where ``orient`` is "v"
    shades  a colour for all dots or one for each
    size    diameter in points
    bar     half the length of the bar at each row's median, in rows; None: no bar
    """
    import seaborn

    values, places = np.asarray(values, dtype=float), np.asarray(places, dtype=float)
    if not values.size:
        return
    across = {"x": values, "y": places} if orient == "h" else {"x": places, "y": values}
    seaborn.swarmplot(
        **across,
        hue=np.broadcast_to(shades, values.shape),
        palette={shade: shade for shade in np.atleast_1d(shades)},
        orient=orient,
        native_scale=True,
        legend=False,
        size=size,
        linewidth=0,
        warn_thresh=1,  # where a row has no room for all dots, the outer ones overlap
        ax=axes,
        **look,
    )
    if bar is None:
        return
    line = axes.vlines if orient == "h" else axes.hlines
    for place in np.unique(places):
        middle = np.median(values[places == place])
        line(middle, place - bar, place + bar, color=LIGHT.ink, linewidth=1.3, zorder=4)
