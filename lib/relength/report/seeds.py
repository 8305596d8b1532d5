"""Every seed in sight, beside the median of all: dots with a bar, or thin curves with a strong one.

seaborn draws them. It is imported with the first of them, so that pages without them need no time
for it.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
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
    look    of the dots; a dot of the shade "none" with an ``edgecolor`` is a ring
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
        warn_thresh=1,  # where a row has no room for all dots, the outer ones overlap
        ax=axes,
        **{"linewidth": 0, **look},
    )
    if bar is None:
        return
    line = axes.vlines if orient == "h" else axes.hlines
    for place in np.unique(places):
        middle = np.median(values[places == place])
        line(middle, place - bar, place + bar, color=LIGHT.ink, linewidth=1.3, zorder=4)


def seed_lines(
    axes: Axes,
    data: pd.DataFrame,
    x: str,
    y: str,
    shade: str,
    *,
    width: float,
    median: float | None = None,
    linestyle: Any = "-",
    **look,
) -> None:
    """A line per seed and, of more than two seeds, a stronger one at their median.

    data    a row per point, with the columns ``x``, ``y`` and ``seed``
    width   width of a seed's line in points
    median  width of the median's line; None: no such line
    look    of the seeds' lines, as matplotlib names it; linestyle is that of all lines
    """
    import seaborn

    if data.empty:
        return
    common = {"color": shade, "linestyle": linestyle, "legend": False, "ax": axes}
    points = {"x": data[x].to_numpy(), "y": data[y].to_numpy()}  # arrays: they name no axis
    seeds = data["seed"].to_numpy()
    seaborn.lineplot(**points, units=seeds, estimator=None, linewidth=width, **common, **look)
    if median is not None and len(np.unique(seeds)) > 2:
        middle = data.groupby(x)[y].median()  # seaborn's own takes ten times as long
        seaborn.lineplot(
            x=middle.index.to_numpy(), y=middle.to_numpy(), estimator=None, linewidth=median,
            zorder=look.get("zorder", 2) + 1, **common,
        )  # fmt: skip
