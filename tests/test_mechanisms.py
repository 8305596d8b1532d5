"""The drawings of the papers' ideas show what the formulas give, on every page they are put on."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from relength.papers.dnc import drawings as dnc
from relength.papers.mla import drawings as mla
from relength.papers.panm import drawings as panm
from relength.paths import BOOK
from relength.report import icons
from relength.report.drawing import Sheet
from relength.report.drawings import DRAWINGS
from relength.report.scoreboard import PAPERS
from relength.report.style import DARK, LIGHT

EXHIBITS = {name: draw() for name, draw in DRAWINGS.items()}


def drawings(html: str) -> list[str]:
    return re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL)


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_has_two_widths_a_caption_and_words_for_those_who_do_not_see_it(name):
    shown = EXHIBITS[name]
    assert f'id="{name}"' in shown.html and "schematic</span>" in shown.html
    (alt,) = re.findall(r'role="img" aria-label="([^"]*)"', shown.html)
    assert len(alt) > 150
    wide, narrow = drawings(shown.html)
    assert 'viewBox="0 0 768 ' in wide
    assert int(re.search(r'viewBox="0 0 (\d+) ', narrow)[1]) <= 328  # a phone's page less margins


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_is_well_formed_and_takes_every_colour_from_the_page(name):
    for svg in drawings(EXHIBITS[name].html):
        ElementTree.fromstring(svg)
        for shade in (*LIGHT, *DARK):
            assert shade not in svg, shade
        assert "var(--rl-ink)" in svg


@pytest.mark.parametrize("name", DRAWINGS)
def test_nothing_is_drawn_beside_the_sheet(name):
    for svg in drawings(EXHIBITS[name].html):
        root = ElementTree.fromstring(svg)
        width, height = map(float, root.get("viewBox").split()[2:])
        boxes = [
            [float(node.get(side)) for side in ("x", "y", "width", "height")]
            for node in root.iter("rect")
        ]
        points = [(float(n.get("cx")), float(n.get("cy"))) for n in root.iter("circle")]
        points += [(x + w, y + h) for x, y, w, h in boxes] + [(x, y) for x, y, *_ in boxes]
        points += [(float(n.get("x")), float(n.get("y"))) for n in root.iter("text")]
        for x, y in points:
            assert 0 <= x <= width and 0 <= y <= height, (x, y)


def test_every_drawing_is_on_the_page_of_its_paper_and_every_paper_has_one():
    for paper in PAPERS:
        own = [name for name in DRAWINGS if name.startswith(f"{paper}-")]
        page = (BOOK / f"{paper}_overview.md").read_text()
        assert own and re.findall(r"```\{drawing\} ([\w-]+)", page) == own
        assert icons.icon(paper).startswith("<svg")


def test_light_falls_on_as_few_neighbours_however_long_the_source_is():
    lit = []
    for length in (6, 24, 100, 1000):
        position, weights = mla.light(length, 0.42)
        assert weights.sum() == pytest.approx(1)
        assert abs(position[weights.argmax()] - 0.42) <= 0.5 / (length - 1)
        lit.append((weights > 0.05).sum())
    assert max(lit) <= min(lit) + 1


def test_addresses_are_consecutive_and_wrap_around():
    assert [panm.binary(n) for n in (5, 6, 15, 16)] == ["0101", "0110", "1111", "0000"]


def test_a_random_first_address_shows_more_addresses_in_training():
    fixed, drawn = (panm._arcs(random_base) for random_base in (False, True))
    assert (fixed[:, 1] == drawn[:, 1]).all()  # the same sequences
    assert panm._seen(fixed) == set(range(panm.TRAINED))
    assert len(panm._seen(drawn)) > 0.9 * panm.RING
    assert not set(panm._tested(True)) - panm._seen(drawn)


def test_a_compressed_state_stays_in_its_square_and_a_free_one_leaves_where_it_was_trained():
    squeezed, free = dnc.compressed(), dnc.drifting()
    assert np.abs(squeezed).max() < 1
    trained, later = free[: dnc.TRAINED], free[dnc.TRAINED :]
    assert later[-1, 0] > trained[:, 0].max() + 1
    assert len(dnc.nearest_pairs(free)) == dnc.NEAREST


def test_the_nearest_pairs_are_those_of_the_largest_cosine():
    states = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.1, 3.0], [-1.0, -1.0]])
    assert [set(pair) for pair in dnc.nearest_pairs(states)[:2]] == [{0, 1}, {2, 3}]


def test_formulas_have_their_scripts_where_they_belong():
    sheet = Sheet(100)
    sheet.maths(0, 20, "z_q ← p_t^a")
    spans = re.findall(r"<tspan(?: dy=\"([-\d.]+)\")? font-size=\"([\d.]+)\">([^<]*)<", sheet.svg())
    words, down, heights = [span[2] for span in spans], 0.0, []
    for moved, _, _ in spans:
        down += float(moved or 0)
        heights.append(down)
    assert words == ["z", "q", " ← p", "t", "a"]
    base, below, again, under, above = heights
    assert base == pytest.approx(again, abs=0.11) and below == pytest.approx(under, abs=0.11)
    assert below > base > above


def test_a_sheet_is_as_high_as_what_is_drawn_on_it():
    sheet = Sheet(50)
    sheet.box(0, 0, 10, 40)
    assert sheet.height >= 40
    sheet.text(0, 60, "a\nb")
    assert sheet.height >= 60 + 1.3 * 12.5
