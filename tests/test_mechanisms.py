"""The drawings of the papers' ideas show what the formulas give, on every page they are put on."""

import re
from itertools import pairwise
from math import cos, pi, sin
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from handmade import in_a_row

from relength.errors import RelengthError
from relength.paths import BOOK, ROOT
from relength.report.drawings import drawing, drawings, for_page, icon
from relength.report.style import DARK, LIGHT, colour
from relength.specs.registry import PAPERS

EXHIBITS = {name: drawing(name) for name in drawings()}
WIDTHS = ("wide", "narrow")
SVG = "{http://www.w3.org/2000/svg}"


def shown(html: str) -> list[str]:
    return re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL)


def file(paper: str, name: str) -> str:
    return (ROOT / "lib/relength/papers" / paper / "drawings" / name).read_text()


def part(paper: str, name: str, group: str) -> ElementTree.Element:
    """A group of a drawing by its id."""
    (found,) = ElementTree.fromstring(file(paper, f"{name}.svg")).findall(f".//*[@id='{group}']")
    return found


def words(group: ElementTree.Element) -> list[str]:
    return ["".join(node.itertext()) for node in group.iter(f"{SVG}text")]


def points(path: ElementTree.Element) -> np.ndarray:
    """The corners (N, 2) of a path of straight pieces."""
    numbers = re.fullmatch(r"M ([-\d.]+ [-\d.]+(?: L [-\d.]+ [-\d.]+)*)", path.get("d"))[1]
    return np.array([pair.split() for pair in numbers.split(" L ")], dtype=float)


def paths(group: ElementTree.Element) -> list[np.ndarray]:
    return [points(path) for path in group.iter(f"{SVG}path")]


def said(paper: str, name: str) -> dict[str, str]:
    return yaml.safe_load(file(paper, "captions.yml"))[name]


@pytest.mark.parametrize("name", EXHIBITS)
def test_a_drawing_has_two_widths_a_caption_and_words_for_those_who_do_not_see_it(name):
    html = EXHIBITS[name].html
    assert f'id="{name}"' in html and "schematic</span>" in html
    (alt,) = re.findall(r'role="img" aria-label="([^"]*)"', html)
    assert len(alt) > 150
    wide, narrow = shown(html)
    assert 'viewBox="0 0 768 ' in wide
    assert int(re.search(r'viewBox="0 0 (\d+) ', narrow)[1]) <= 328  # a phone's page less margins


@pytest.mark.parametrize("name", EXHIBITS)
def test_a_drawing_is_well_formed_and_takes_every_colour_from_the_page(name):
    for svg in shown(EXHIBITS[name].html):
        ElementTree.fromstring(svg)
        for shade in (*LIGHT, *DARK):
            assert shade not in svg, shade
        assert "var(--rl-ink)" in svg and "font-family: sans-serif" not in svg
        assert " id=" not in svg  # two widths and other drawings stand on the same page


@pytest.mark.parametrize("name", EXHIBITS)
def test_nothing_is_drawn_beside_the_sheet(name):
    for svg in shown(EXHIBITS[name].html):
        root = ElementTree.fromstring(svg)
        width, height = map(float, root.get("viewBox").split()[2:])
        boxes = [
            [float(node.get(side)) for side in ("x", "y", "width", "height")]
            for node in root.iter(f"{SVG}rect")
        ]
        at = [(float(n.get("cx")), float(n.get("cy"))) for n in root.iter(f"{SVG}circle")]
        at += [(x + w, y + h) for x, y, w, h in boxes] + [(x, y) for x, y, *_ in boxes]
        at += [(float(n.get("x")), float(n.get("y"))) for n in root.iter(f"{SVG}text")]
        assert len(at) > 10
        for x, y in at:
            assert 0 <= x <= width and 0 <= y <= height, (x, y)


def test_every_drawing_is_on_the_page_of_its_paper_and_every_paper_has_one():
    for paper in PAPERS:
        own = [name for name in EXHIBITS if name.startswith(f"{paper}-")]
        page = (BOOK / f"{paper}_overview.md").read_text()
        assert own and re.findall(r"```\{drawing\} ([\w-]+)", page) == own
        assert icon(paper).startswith("<svg")


def test_a_page_that_asks_for_an_unknown_drawing_is_told_which_there_are():
    with pytest.raises(RelengthError, match="mla-mechanism"):
        drawing("mla-machine")


def test_what_an_editor_adds_stays_the_drawings_own():
    saved = (
        '<?xml version="1.0"?>\n<!-- an editor -->\n<svg id="svg1">\n  <defs>\n'
        '    <marker\n       id="tip"/></defs>\n'
        '  <path id="p" style="fill:#1f2529;marker-end:url(#tip)"/>\n  <text>a <tspan>b</tspan> c'
        "</text>\n</svg>\n"
    )
    assert for_page(saved, "here") == (
        '<svg aria-hidden="true"><defs><marker id="here-tip"/></defs>'
        '<path style="fill: var(--rl-ink);marker-end:url(#here-tip)"/><text>a <tspan>b</tspan> c'
        "</text></svg>"
    )


# MLA: the light on the ruler

SIGMA = 0.27 + 0.7  # the released code's least width plus a read-out of 0.7; divided by s (Eq. 10)
CENTRE = 0.42


def light(length: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions (s,) in [0, 1] and attention weights (s,) of a focus at the centre (Eqs. 5-10)."""
    position = np.linspace(0, 1, length)
    density = np.exp(-0.5 * ((position - CENTRE) * length / SIGMA) ** 2)
    return position, density / density.sum()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("length", [6, 24])
def test_bell_and_bars_are_those_of_the_equations(width, length):
    (bell,) = paths(part("mla", f"mechanism-{width}", f"ruler-{length}-bell"))
    place = (bell[:, 0] - bell[0, 0]) / (bell[-1, 0] - bell[0, 0])
    base = part("mla", f"mechanism-{width}", f"ruler-{length}").findall(f"{SVG}path")[0]
    height = points(base)[0, 1] - bell[:, 1]
    expected = np.exp(-0.5 * ((place - CENTRE) * length / SIGMA) ** 2)
    np.testing.assert_allclose(height / height.max(), expected, atol=0.01)
    bars = np.array(paths(part("mla", f"mechanism-{width}", f"ruler-{length}-weights")))
    position, weights = light(length)
    seen = weights > 0.005
    at = (bars[:, 0, 0] - bell[0, 0]) / (bell[-1, 0] - bell[0, 0])
    np.testing.assert_allclose(at, position[seen], atol=0.001)
    tall = bars[:, 0, 1] - bars[:, 1, 1]
    np.testing.assert_allclose(tall / tall.max(), weights[seen] / weights.max(), atol=0.01)


def test_light_falls_on_as_few_neighbours_however_long_the_source_is():
    lit = [int((light(length)[1] > 0.05).sum()) for length in (6, 24, 100, 1000)]
    assert max(lit) <= min(lit) + 1
    assert f"{lit[0]} and {lit[1]} positions" in said("mla", "mechanism")["caption"]
    assert f"{lit[0]} and {lit[1]} positions" in said("mla", "mechanism")["alt"]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("model", ["LocAttn", "OneStepAttn", "MonoAttn"])
def test_a_model_has_its_colour_in_drawings_too(width, model):
    name = part("mla", f"mechanism-{width}", f"rule-{model}").find(f"{SVG}text")
    assert name.text == model and f"fill: {colour(model)}" in name.get("style")


# PANM: addresses

RING, TRAINED, SAMPLES, TESTED = 64, 10, 24, 48  # as the caption of the drawing says


def arcs(random_base: bool) -> np.ndarray:
    """Base and length (SAMPLES, 2) of training sequences, from a numbered stream."""
    stream = np.random.Generator(np.random.Philox(key=7))
    lengths = stream.integers(5, TRAINED + 1, SAMPLES)
    bases = stream.integers(0, RING, SAMPLES)
    return np.stack([bases if random_base else 0 * bases, lengths], axis=1)


def seen(random_base: bool) -> set[int]:
    return {(base + k) % RING for base, length in arcs(random_base) for k in range(length)}


def of_the_test(random_base: bool) -> set[int]:
    start = 9 if random_base else 0
    return {(start + k) % RING for k in range(TESTED)}


def turned(group: ElementTree.Element, centre: np.ndarray) -> list[tuple[float, float]]:
    """Start of each arc of a group and how far it goes, both in addresses."""
    found = []
    for path in group.iter(f"{SVG}path"):
        numbers = re.fullmatch(
            r"M (\S+) (\S+) A \S+ \S+ 0 [01] 1 (\S+) (\S+)", path.get("d")
        ).groups()
        ends = np.array(numbers, dtype=float).reshape(2, 2) - centre
        start, end = (np.arctan2(ends[:, 0], -ends[:, 1]) / (2 * pi) * RING) % RING
        found.append((start, (end - start) % RING))
    return found


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("random_base", [False, True])
def test_the_ring_shows_the_sequences_of_the_numbered_stream(width, random_base):
    name = "random-first-address" if random_base else "first-address-0"
    ring = part("panm", f"addresses-{width}", f"{name}-addresses")
    dots = [(float(c.get("cx")), float(c.get("cy"))) for c in ring.iter(f"{SVG}circle")]
    filled = [k for k, c in enumerate(ring) if "fill: none" not in c.get("style")]
    assert len(dots) == RING and set(filled) == seen(random_base)
    centre = np.mean(dots, axis=0)
    training = turned(part("panm", f"addresses-{width}", f"{name}-training"), centre)
    for (start, way), (base, length) in zip(training, arcs(random_base), strict=True):
        assert abs((start - base + RING / 2) % RING - RING / 2) < 0.1
        assert way == pytest.approx(length - 1, abs=0.15)
    test = part("panm", f"addresses-{width}", f"{name}-test")
    reached = sum(
        way + 0.6 for _, way in turned(test, centre)
    )  # each piece stops short of the next
    assert reached == pytest.approx(TESTED, abs=0.2)
    new = of_the_test(random_base) - seen(random_base)
    broken = any(path.get("stroke-dasharray") for path in test)
    assert broken == bool(new)
    assert f"{len(seen(random_base))} of {RING}" in words(part("panm", f"addresses-{width}", name))
    caption = said("panm", "addresses")["caption"]
    assert in_a_row([len(seen(random_base)), *([len(new), TESTED] if new else [])], caption)
    assert bool(new) or ", and none" in caption


def test_a_random_first_address_shows_more_addresses_in_training():
    fixed, drawn = (arcs(random_base) for random_base in (False, True))
    assert (fixed[:, 1] == drawn[:, 1]).all()  # the same sequences
    assert seen(False) == set(range(TRAINED))
    assert len(seen(True)) > 0.9 * RING
    assert not of_the_test(True) - seen(True)


@pytest.mark.parametrize("width", WIDTHS)
def test_addresses_of_slots_are_consecutive(width):
    slots = [part("panm", f"mechanism-{width}", f"slot-{k}") for k in range(1, 7)]
    digits, addresses = zip(*map(words, slots), strict=True)
    assert all(int(b, 2) == int(a, 2) + 1 for a, b in pairwise(addresses))
    alt = said("panm", "mechanism")["alt"]
    assert " ".join(digits) in alt and f"{addresses[0]} to {addresses[-1]}" in alt


# DNC: trajectories of a made-up state of two numbers

STEPS, IN_TRAINING, NEAREST = 30, 15, 5  # steps shown, those of training, pairs of the penalty (K)


def drifting() -> np.ndarray:
    """A state (STEPS, 2) that counts: it turns once in five steps and moves on a little in each."""
    t = np.arange(STEPS)
    turn = 2 * pi * t / 5
    return np.stack([0.135 * t - 0.9 + 0.3 * np.cos(turn), 0.045 * t - 0.6 + 0.3 * np.sin(turn)], 1)


def compressed() -> np.ndarray:
    """A state (STEPS, 2) that turns by a fifth in each step and passes a tanh."""
    angle = 2 * pi / 5
    turn = np.array([[cos(angle), -sin(angle)], [sin(angle), cos(angle)]])
    states = [np.array([0.1, 0.25])]
    for _ in range(STEPS - 1):
        states.append(np.tanh(1.45 * turn @ states[-1]))
    return np.array(states)


def nearest_pairs(states: np.ndarray) -> list[tuple[int, int]]:
    """The K pairs of states with the largest cosine similarity: the penalty pulls them together."""
    unit = states / np.linalg.norm(states, axis=1, keepdims=True)
    pairs = [(i, j) for i in range(len(states)) for j in range(i)]
    return sorted(pairs, key=lambda pair: -float(unit[pair[0]] @ unit[pair[1]]))[:NEAREST]


def circles(group: ElementTree.Element) -> np.ndarray:
    return np.array([(c.get("cx"), c.get("cy")) for c in group.iter(f"{SVG}circle")], dtype=float)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("panel", ["no-constraint", "compression", "regularisation"])
def test_a_path_of_states_is_the_computed_one(width, panel):
    states = compressed() if panel == "compression" else drifting()
    steps = part("dnc", f"states-{width}", f"{panel}-steps")
    drawn = circles(steps)
    fit = [np.polyfit(states[:, axis], drawn[:, axis], 1) for axis in (0, 1)]
    assert (
        fit[0][0] == pytest.approx(-fit[1][0], rel=0.01) and fit[0][0] > 0
    )  # one scale, y upwards
    for axis in (0, 1):
        np.testing.assert_allclose(np.polyval(fit[axis], states[:, axis]), drawn[:, axis], atol=0.1)
    known = [LIGHT.first in c.get("style").split(";")[0] for c in steps]
    assert known == [k < IN_TRAINING for k in range(STEPS)]
    (line,) = paths(part("dnc", f"states-{width}", f"{panel}-path"))
    np.testing.assert_allclose(line, drawn, atol=0.11)
    if panel == "compression":
        square = part("dnc", f"states-{width}", panel).findall(f"{SVG}rect")[1]
        assert float(square.get("width")) == pytest.approx(2 * fit[0][0], rel=0.01)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_linked_states_are_the_most_similar_ones_of_training(width):
    drawn = circles(part("dnc", f"states-{width}", "regularisation-steps"))
    links = paths(part("dnc", f"states-{width}", "regularisation-nearest-pairs"))
    for link, pair in zip(links, nearest_pairs(drifting()[:IN_TRAINING]), strict=True):
        np.testing.assert_allclose(link, drawn[list(pair)], atol=0.11)


def test_a_compressed_state_stays_in_its_square_and_a_free_one_leaves_it():
    squeezed, free = compressed(), drifting()
    assert np.abs(squeezed).max() < 1
    trained, later = free[:IN_TRAINING], free[IN_TRAINING:]
    assert later[-1, 0] > trained[:, 0].max() + 1


# MemReasoner: two hops


@pytest.mark.parametrize("width", WIDTHS)
def test_the_two_hops_find_the_facts_that_answer_the_question(width):
    facts = [words(part("memreasoner", f"mechanism-{width}", f"fact-{k}"))[1] for k in range(1, 6)]
    assert " ".join(facts) in said("memreasoner", "mechanism")["alt"]
    assert "football" in facts[1] and facts[3] == "Mary went to the garden."
