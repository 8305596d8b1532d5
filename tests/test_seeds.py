"""Every run has a dot or a line of its own, at its values, and all of them a median."""

import numpy as np
import pandas as pd
import pytest

from relength.report.seeds import seed_lines, swarm
from relength.report.style import WIDE, canvas


def drawn(orient, values, places):
    figure = canvas(WIDE, 2)
    axes = figure.add_axes((0, 0, 1, 1))
    limits = {"xlim": (-5, 105), "ylim": (-0.5, 1.5)}
    axes.set(**limits if orient == "h" else {"xlim": limits["ylim"], "ylim": limits["xlim"]})
    swarm(axes, values, places, "#123456", size=4, orient=orient)
    figure.draw_without_rendering()  # seaborn spreads the dots when they are drawn
    *dots, _, _ = axes.collections
    return figure, np.concatenate([group.get_offsets() for group in dots]), axes.collections[-2:]


@pytest.mark.parametrize("orient", ["h", "v"])
def test_equal_values_lie_side_by_side_and_every_dot_has_its_value(orient):
    values, places = [100, 100, 100, 40, 0, 10], [0, 0, 0, 0, 1, 1]
    figure, dots, bars = drawn(orient, values, places)
    at = 0 if orient == "h" else 1
    assert sorted(dots[:, at]) == sorted(values)
    pixels = figure.axes[0].transData.transform(dots)
    apart = np.linalg.norm(pixels[:, None] - pixels, axis=-1) + 1e9 * np.eye(len(dots))
    assert apart.min() > 3.9 * figure.dpi / 72  # points
    assert [bar.get_segments()[0][0][at] for bar in bars] == [100, 5]


def test_a_row_too_narrow_for_its_dots_keeps_them_all():
    _, dots, _ = drawn("h", [50.0] * 60 + [20.0], [0] * 60 + [1])
    assert len(dots) == 61 and (dots[:60, 1] >= -0.5).all() and (dots[:60, 1] <= 0.5).all()


def test_a_dot_without_a_shade_is_a_ring():
    axes = canvas(WIDE, 2).add_axes((0, 0, 1, 1))
    ring = {"edgecolor": "#123456", "linewidth": 0.9}
    swarm(axes, [10, 90], [0, 0], ["none", "#123456"], size=4, bar=None, **ring)
    (dots,) = axes.collections
    assert [face[3] for face in dots.get_facecolors()] == [0, 1]
    assert dots.get_linewidths() == [0.9] and (dots.get_edgecolors()[:, 3] == 1).all()


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_seed_is_a_line_and_more_than_two_have_their_median(count):
    steps, heights = [1, 10, 100], np.random.default_rng(0).random((4, 3))[:count]
    points = pd.DataFrame(
        [(k, x, y) for k, row in enumerate(heights) for x, y in zip(steps, row, strict=True)],
        columns=["seed", "step", "height"],
    ).sample(frac=1, random_state=1)
    axes = canvas(WIDE, 2).add_axes((0, 0, 1, 1))
    axes.set_xscale("log")
    seed_lines(axes, points, "step", "height", "#123456", width=0.5, median=2.0, linestyle="--")
    assert axes.get_xlabel() == axes.get_ylabel() == ""
    thin = [line for line in axes.lines if line.get_linewidth() == 0.5 and len(line.get_xdata())]
    assert {line.get_linestyle() for line in thin} == {"--"}
    assert np.allclose(
        sorted(tuple(line.get_ydata()) for line in thin), sorted(map(tuple, heights))
    )
    strong = [line for line in axes.lines if line.get_linewidth() == 2.0 and len(line.get_xdata())]
    assert len(strong) == (count > 2)
    for line in strong:
        assert line.get_linestyle() == "--"
        assert np.allclose(line.get_xdata(), steps)
        assert np.allclose(line.get_ydata(), np.median(heights, axis=0))
