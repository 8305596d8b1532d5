"""The built book as its readers meet it: in a browser, by day and by night, on phone and desk.

Screenshots of every page, by day on a desk and by night on a phone, are left in
``.test-output/screenshots`` for people to look at.
"""

import gzip
import json
import re
import shutil
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest
from browser import AUDITED, DESK, HEIGHT, OPENED, PHONE, VIEWS, View, Visit, Window, served
from pages import TO_OPEN, TO_USE, pages

from relength.paths import BOOK, ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.browser

SCREENSHOTS = ROOT / ".test-output" / "screenshots"
TALLEST = 6_000  # pixels of a page that a picture shows; to paint more takes a second each
PLAIN = View("light", DESK)
# Templates whose pages are asked of a server, too: what only that can refuse, all pages share.
SERVED = ("intro",)


def screenshot(page: str, view: View) -> Path:
    return SCREENSHOTS / f"{page.removesuffix('.html').replace('/', '-')}-{view}.jpeg"


every_page = pytest.mark.parametrize("page", TO_OPEN)
from_anywhere = pytest.mark.parametrize(
    "origin", ["file", pytest.param("server", marks=pytest.mark.weekly)]
)


@pytest.fixture(scope="module")
def origins(book):
    """The two ways readers get the book: from a folder, or from a server."""
    with served(book) as server:
        yield {"file": book.as_uri(), "server": server}


@pytest.fixture(scope="module")
def window(chromium):
    """A window on a desk, by day, to do things in."""
    opened = Window(chromium, PLAIN)
    yield opened
    opened.context.close()


@pytest.fixture(scope="module", params=TO_USE)
def unfolded(window, origins, request) -> Window:
    """A page, opened once for all tests that do something on it, with nothing folded away."""
    window.open(f"{origins['file']}/{request.param}")
    window.unfold()
    return window


@pytest.fixture
def looking(chromium, origins) -> "Iterator[Callable[[str, View], Page]]":
    """Opens a page in a window of its own, which remembers nothing of other tests."""
    windows = []

    def look(page: str, view: View) -> "Page":
        windows.append(Window(chromium, view))
        windows[-1].open(f"{origins['file']}/{page}.html")
        return windows[-1].page

    yield look
    for window in windows:
        assert window.complaints == []
        window.context.close()


@pytest.fixture(scope="module")
def visit(chromium, origins) -> Callable[[str, View, str], tuple[Visit, list[str]]]:
    """Shows a page in a view, once: what was seen, and what axe-core finds in the audited views."""
    shutil.rmtree(SCREENSHOTS, ignore_errors=True)
    window = cache(lambda view, _origin: Window(chromium, view))

    def picture(opened: Window, page: str, view: View) -> None:
        tall = min(TALLEST, opened.page.evaluate("document.documentElement.scrollHeight"))
        # A window of this height is painted in a third of the time that a whole long page takes.
        opened.page.set_viewport_size({"width": view.width, "height": tall})
        opened.page.screenshot(path=screenshot(page, view), quality=80)
        opened.page.set_viewport_size({"width": view.width, "height": HEIGHT})

    @cache
    def at_width(page: str, width: int, origin: str) -> dict[View, tuple[Visit, list[str]]]:
        (view,) = (view for view in OPENED[origin] if view.width == width)
        opened = window(view, origin)
        opened.open(f"{origins[origin]}/{page}")
        seen = {view: (opened.look(), [])}
        if origin == "file":
            (audited,) = (other for other in AUDITED if other.width == width)
            opened.turn(audited.theme)
            picture(opened, page, audited)
            # What axe need not see is not looked at again, either: in this width all of it was.
            violations = opened.violations()
            seen[audited] = opened.look(), violations
        return seen

    return lambda page, view, origin: at_width(page, view.width, origin)[view]


# What the tests themselves would notice


def test_a_bad_page_is_noticed(window, tmp_path):
    (tmp_path / "bad.html").write_text(
        "<!doctype html><html data-theme='light'><title>Bad</title><body><main>"
        "<h3>No first heading</h3><img src='https://example.org/a.png'>"
        "<p style='color: #aaa; background: #fff; width: 3000px'>pale and wide</p>"
        "<a href='#nowhere'>lost</a><span class='math'>x^2</span>"
        "<script>console.error('no')</script></main>"
    )
    window.open((tmp_path / "bad.html").as_uri())
    seen = window.look()
    assert seen.outside == ("https://example.org/a.png",)
    assert "error: no" in seen.complaints
    assert len(seen.nameless) == len(seen.bad_equations) == 1
    assert any("pale" in text for text in seen.sticking_out)
    found = {line.split(":")[0] for line in window.violations()}
    assert {"color-contrast", "html-has-lang", "page-has-heading-one"} <= found


def test_what_looks_otherwise_is_noticed_far_down(window, tmp_path):
    """A few of a hundred rows or links are samples, and so is one that is pale or hidden."""
    row, link = "<tr><td>dark</td></tr>", "<p><a href='#rows'>alone</a></p>"
    pale = "<tr><td style='color: #ccc'>pale</td></tr>"
    style = "<style>a { color: #333; text-decoration: none } body { color: #222 }</style>"
    (tmp_path / "long.html").write_text(
        f"<!doctype html><html lang='en'><title>Long</title>{style}<main><h1>Rows</h1>"
        f"<table id='rows'><tbody>{row * 99}{pale}</tbody></table>"
        f"{link * 99}<p>Words that look as <a href='#rows'>those</a> beside them.</p></main>"
    )
    window.open((tmp_path / "long.html").as_uri())
    found = window.violations()
    assert {line.split(":")[0] for line in found} == {"color-contrast", "link-in-text-block"}
    assert len(found) == 2


def test_on_a_phone_a_table_of_numbers_may_scroll_and_one_of_sentences_may_not(chromium, tmp_path):
    long = "A sentence of which one would have to push every line to and fro."
    box = "<div style='overflow-x: auto'><table><tbody><tr>{}</tr></tbody></table></div>"
    cells = {"numbers": "<td style='min-width: 9rem'>1.5</td>" * 9, "words": f"<td>{long}" * 9}
    window = Window(chromium, View("light", PHONE))
    for kind, row in cells.items():
        (tmp_path / f"{kind}.html").write_text(
            f"<!doctype html><html lang='en'><title>T</title><main>{box.format(row)}</main>"
        )
        window.open((tmp_path / f"{kind}.html").as_uri())
        assert any(long[:9] in text for text in window.look().sticking_out) == (kind == "words")
    window.context.close()


@pytest.mark.parametrize(
    "page, table",
    [
        pytest.param("provenance", "table.runs", marks=pytest.mark.weekly),
        ("environment", "#tab-machines"),
    ],
)
def test_on_a_phone_a_table_with_many_columns_is_a_list_of_cards(chromium, origins, page, table):
    window = Window(chromium, View("light", PHONE))
    window.open(f"{origins['file']}/{page}.html")
    row = window.page.locator(f"{table} tbody tr").first.locator("td")
    places = [cell.bounding_box() for cell in row.all()]
    assert len(places) >= 8 and len({place["x"] for place in places}) == 1
    assert all(a["y"] + a["height"] <= b["y"] for a, b in pairwise(places))
    aligned = row.evaluate_all("cells => cells.map((cell) => getComputedStyle(cell).textAlign)")
    assert set(aligned) == {"left"}
    window.context.close()


# Every page


@pytest.mark.parametrize(
    ("page", "origin"),
    [
        pytest.param(*page.values, origin, id=f"{page.id}-{origin}", marks=page.marks)
        for origin, opened in (("file", TO_OPEN), ("server", pages(SERVED)))
        for page in opened
    ],
)
def test_a_page_asks_nothing_of_the_network_and_the_browser_has_no_complaint(visit, page, origin):
    views = VIEWS if origin == "file" else OPENED[origin]
    seen = {str(view): visit(page, view, origin)[0] for view in views}
    assert {view: s.outside for view, s in seen.items() if s.outside} == {}
    assert {view: s.complaints for view, s in seen.items() if s.complaints} == {}


@every_page
def test_a_page_is_as_light_or_dark_as_the_readers_machine(visit, page):
    for view in VIEWS:
        seen, _ = visit(page, view, "file")
        assert seen.theme == view.theme
        lightness = sum(map(int, re.findall(r"\d+", seen.background)[:3])) / (3 * 255)
        assert lightness > 0.9 if view.theme == "light" else lightness < 0.2, seen.background


@every_page
def test_text_fits_the_width_of_the_window(visit, page):
    found = {str(view): visit(page, view, "file")[0].sticking_out for view in VIEWS}
    assert {view: out for view, out in found.items() if out} == {}


@every_page
def test_pictures_that_scripts_draw_have_words_and_equations_can_be_spoken(visit, page):
    for view in VIEWS:
        seen, _ = visit(page, view, "file")
        assert (seen.nameless, seen.bad_equations) == ([], []), str(view)


@every_page
def test_contrast_headings_and_roles_pass_axe(visit, page):
    found = {str(view): visit(page, view, "file")[1] for view in AUDITED}
    assert {view: lines for view, lines in found.items() if lines} == {}


@every_page
def test_a_picture_of_every_page_is_left_to_look_at(visit, page):
    for view in AUDITED:
        visit(page, view, "file")
        assert screenshot(page, view).stat().st_size > 10_000, str(view)


# What readers do

WAYS = ("click", "Enter", "Space")
NOTEBOOK = "executed/panm_cost"  # a short one


def in_one_way(often: tuple[str, str]) -> pytest.MarkDecorator:
    """Every page and way as parameters of a test; all but one of them weekly."""
    return pytest.mark.parametrize(
        ("name", "way"),
        [
            pytest.param(name, way, marks=() if (name, way) == often else pytest.mark.weekly)
            for name in ("intro", NOTEBOOK, "search")
            for way in WAYS
        ],
    )


def use(button: "Locator", way: str) -> None:
    """With the mouse, or as somebody who has only keys: the focus stays where it is."""
    if way == "click":
        button.click()
    else:
        button.focus()
        button.page.keyboard.press(way)


@in_one_way(("intro", "click"))
def test_on_a_phone_a_button_opens_the_list_of_pages_with_the_search(looking, name, way):
    page = looking(name, View("light", PHONE))
    drawer = page.locator("dialog.bd-sidebar-primary")
    for _ in range(2):
        use(page.locator(".primary-toggle:visible"), way)
        drawer.get_by_role("link", name="Provenance").wait_for()
        assert drawer.get_by_role("button", name="Search").is_visible()
        page.keyboard.press("Escape")
        drawer.wait_for(state="detached")
    use(page.locator(".primary-toggle:visible"), way)
    use(drawer.get_by_role("button", name="Search"), way)
    page.locator("input[name=q]:visible").first.fill("MonoAttn")
    page.keyboard.press("Escape")
    if drawer.count():  # the search was a window of its own above the list
        page.keyboard.press("Escape")
    drawer.wait_for(state="detached")
    use(page.locator(".primary-toggle:visible"), way)
    drawer.get_by_role("link", name="Provenance").click()
    page.wait_for_url("**/provenance.html")


@in_one_way((NOTEBOOK, "Enter"))
def test_on_a_desk_a_button_hides_and_shows_the_list_of_pages(looking, name, way):
    page = looking(name, PLAIN)
    listed = page.get_by_role("navigation", name="Main").get_by_role("link", name="Provenance")
    button = page.locator(".primary-toggle:visible")
    assert listed.is_visible() and page.locator(".secondary-toggle:visible").count() == 0
    use(button, way)
    listed.wait_for(state="hidden")
    if way == "click":
        button.click()
    else:
        page.keyboard.press(way)  # it is still there
    listed.wait_for()


@pytest.mark.parametrize(
    "way", ["Enter", *(pytest.param(way, marks=pytest.mark.weekly) for way in ("click", "Space"))]
)
def test_on_a_phone_a_button_opens_the_contents_of_a_page_that_has_some(looking, way):
    page = looking(NOTEBOOK, View("light", PHONE))
    use(page.locator(".secondary-toggle:visible"), way)
    link = page.locator("dialog").get_by_role("link", name="Verdict")
    use(link, "click" if way == "click" else "Enter")
    page.locator("dialog[open]").wait_for(state="detached")
    at_the_top = "e => { const y = e.getBoundingClientRect().top; return 0 <= y && y < 200; }"
    page.wait_for_function(at_the_top, arg=page.locator("#verdict").element_handle())
    assert looking("intro", View("light", PHONE)).locator(".secondary-toggle:visible").count() == 0


# What has the focus, and how wide the line around it is; null after the last stop of the page.
FOCUS = """() => {
  const at = document.activeElement, { outlineStyle, outlineWidth } = getComputedStyle(at);
  return at === document.body ? null
    : [at.outerHTML.slice(0, 120), outlineStyle === "none" ? 0 : parseFloat(outlineWidth)];
}"""


@pytest.mark.parametrize("view", AUDITED, ids=str)
@pytest.mark.parametrize("name", [pytest.param("intro", marks=pytest.mark.weekly), NOTEBOOK])
def test_whoever_steps_through_a_page_sees_where_they_are(looking, name, view):
    page, stops = looking(name, view), []
    while len(stops) < 1000:
        page.keyboard.press("Tab")
        if not (stop := page.evaluate(FOCUS)):
            break
        stops.append(stop)
    assert 50 < len(stops) < 1000
    assert [element for element, width in stops if width < 2] == []


def test_a_button_turns_the_page_light_and_dark(looking):
    page, seen = looking("intro", View("dark", DESK)), []
    for _ in range(3):
        page.locator(".theme-switch-button").click()
        theme = page.evaluate("document.documentElement.dataset.theme")
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        lightness = sum(map(int, re.findall(r"\d+", ground)[:3])) / (3 * 255)
        assert lightness > 0.9 if theme == "light" else lightness < 0.2
        seen.append(theme)
    assert set(seen) == {"light", "dark"}


@from_anywhere
def test_search_finds_a_models_name(window, origins, origin):
    window.open(f"{origins[origin]}/intro.html")
    page = window.page
    page.locator("button.search-button__button:visible").first.click()
    page.locator("input[name=q]:visible").fill("OneStepAttn")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=OneStepAttn*")
    # The search reads the pages it found for their excerpts; leaving would break that off.
    page.wait_for_load_state("networkidle")
    hit = page.locator("#search-results a[href*='executed/mla_table2.html']").first
    hit.click()
    page.wait_for_url("**/executed/mla_table2.html*")
    assert "OneStepAttn" in page.locator("article").inner_text()
    assert (window.complaints, window.outside) == ([], [])


def number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


# What every column of a table shows after a click on its head and after a second one: how the head
# says it is sorted, and what the cells sort by. A cell may carry a value other than its text.
SORT = """table => [...table.tHead.rows[table.tHead.rows.length - 1].cells].flatMap((head, i) =>
  [1, 2].map(() => {
    head.querySelector("button").click();
    const cells = [...table.tBodies[0].rows].map((row) => row.cells[i]);
    const keys = cells.map((cell) => [cell.dataset.value ?? null, cell.textContent]);
    return [head.getAttribute("aria-sort"), keys];
  }))"""
# What a cell holds and does not show. (To read what is shown at every click, as the test of sorting
# could, has the whole page laid out as often.)
UNSEEN = r"""table => [...table.tBodies[0].querySelectorAll("th, td")].map((cell) =>
  [cell.innerText, cell.textContent].map((words) => words.replace(/\s+/g, "")))
  .filter(([shown, held]) => shown !== held)"""


def test_there_are_tables_to_sort_and_filter_and_files_to_download(window, origins):
    window.open(f"{origins['file']}/executed/mla_table2.html")
    window.unfold()
    for there in ("table.sortable", ".table-tools input[type=search]", "a[download$='.csv']"):
        assert window.page.locator(there).count(), there
    window.open(f"{origins['file']}/provenance.html")
    assert window.page.get_by_role("button", name="Download CSV").count()


# Name, words and content (base64) of every link that saves what its own address holds.
SAVED = """links => links.map((link) =>
  [link.download, link.innerText, link.href.match(/^data:[^,]*;base64,(.*)$/s)[1]])"""


def test_downloads_can_be_read(unfolded):
    links = unfolded.page.locator("a[download]")
    saved = {}
    for name, words, held in links.evaluate_all(SAVED):
        content = saved[name] = b64decode(held)
        text = gzip.decompress(content) if name.endswith(".gz") else content
        promised = int(re.search(r"([\d,]+) (?:rows|runs)", words)[1].replace(",", ""))
        if ".csv" in name:
            assert len(pd.read_csv(BytesIO(text))) == promised, name
        else:
            assert len([json.loads(line) for line in text.splitlines()]) == promised, name
    if saved:
        with unfolded.page.expect_download() as started:
            links.first.click()
        name = started.value.suggested_filename
        assert Path(started.value.path()).read_bytes() == saved[name]


def test_tables_sort_by_any_column(unfolded):
    for table in unfolded.page.locator("table.sortable").all():
        rows = Counter(table.locator("tbody tr").all_inner_texts())
        assert table.evaluate(UNSEEN) == []
        for click, (direction, cells) in enumerate(table.evaluate(SORT)):
            assert direction == ("ascending", "descending")[click % 2]
            measured = any(value is not None for value, _ in cells)
            keys = [(value or "") if measured else text.strip() for value, text in cells]
            filled = [key for key in keys if key.strip("–-")]
            assert keys[: len(filled)] == filled, "missing values are not at the end"
            numbers = [number(key) for key in filled]
            if None not in numbers:
                assert numbers == sorted(numbers, reverse=direction == "descending")
            runs = [t for i, t in enumerate(filled) if i == 0 or t != filled[i - 1]]
            assert len(runs) == len(set(filled)), "equal cells are not together"
        assert Counter(table.locator("tbody tr").all_inner_texts()) == rows


# As they are sorted: numbers, whatever their unit, then words, of which some begin with digits.
ORDER = (
    *("\u22125", "-1.5", "1e-3", "9 s", "≈ 12 %", "1,200", "2\u2009400"),
    *("3.9.1", "3.11.7", "296e8a64b2ec", "63972781a345", "aeb44576a621", "c2722bc56f77", "x"),
)


def test_a_column_of_anything_has_one_order(window):
    # Hashes begin with digits or letters; whoever reads some as numbers gets an order that turns in
    # a circle, and what comes out of it depends on what went in.
    script = (BOOK / "assets" / "tables.js").read_text()
    for turn in range(len(ORDER)):
        body = "".join(f"<tr><td>{word}</td></tr>" for word in ORDER[turn:] + ORDER[:turn])
        table = f"<table class=sortable><thead><tr><th>a</thead><tbody>{body}</tbody></table>"
        window.page.set_content(f"{table}<script>{script}</script>")
        ascending, descending = window.page.locator("table").evaluate(SORT)
        assert tuple(text for _, text in ascending[1]) == ORDER
        assert tuple(text for _, text in descending[1]) == ORDER[::-1]


def test_tables_filter_and_what_is_left_downloads(unfolded):
    for tools in unfolded.page.locator(".table-tools").all():
        table = tools.locator("xpath=following::table[1]")
        rows = table.locator("tbody tr").all_inner_texts()
        if tools.get_by_label("Filter").count():
            word = max(re.findall(r"\w+", rows[-1]), key=len)
            tools.get_by_label("Filter").fill(word)
            left = table.locator("tbody tr:visible").all_inner_texts()
            assert left == [row for row in rows if word.lower() in row.lower()]
            assert re.search(rf"\b{len(rows)} rows", tools.locator("output").inner_text())
            rows = left
        button = tools.get_by_role("button", name="Download CSV")
        if button.count():
            with unfolded.page.expect_download() as started:
                button.click()
            assert len(pd.read_csv(started.value.path())) == len(rows)


# For every choice in turn, back to that of everything: what the rows in sight have in the column
# that it is about, and how many rows the table says there are. (A choice by the mouse has the whole
# page laid out, which takes long with nothing folded.)
CHOOSE = """select => {
  const table = document.evaluate("following::table[1]", select, null, 9).singleNodeValue;
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  const words = (e) => e.textContent.trim().replace(/\\s+/g, " ");
  const column = heads.findIndex((head) => words(head) === words(select.parentElement.firstChild));
  return [...select.options].reverse().map((option) => {
    select.value = option.value;
    select.dispatchEvent(new Event("change", { bubbles: true }));
    const there = (row) => getComputedStyle(row).display !== "none";
    const seen = [...table.tBodies[0].rows].filter(there);
    const told = select.closest(".table-tools").querySelector("output").textContent;
    return [words(option), seen.map((row) => words(row.cells[column])), told];
  });
}"""


def test_a_choice_keeps_the_rows_that_have_it(unfolded):
    for written in unfolded.page.locator(".table-tools input").all():
        written.fill("")  # by another test
    for select in unfolded.page.locator(".table-tools select").all():
        *choices, (_, everything, total) = select.evaluate(CHOOSE)
        assert choices and total == f"{len(everything)} rows"
        for choice, cells, told in choices:
            assert set(cells) == {choice}
            assert told == f"{len(cells)} of {total}"
        assert sum(len(cells) for _, cells, _ in choices) <= len(everything)


def test_a_choice_by_keys_is_one(window, origins):
    window.open(f"{origins['file']}/executed/mla_table2.html")
    window.unfold()
    select = window.page.locator(".table-tools select").first
    rows = select.locator("xpath=following::table[1]").locator("tbody tr")
    everything = rows.filter(visible=True).count()
    *_, (_, cells, _) = select.evaluate(CHOOSE)
    assert len(cells) == everything
    select.focus()
    window.page.keyboard.press("ArrowDown")
    choice = select.locator("option:checked").inner_text()
    assert choice == select.locator("option").nth(1).inner_text()
    assert rows.filter(visible=True).count() == cells.count(choice) < everything


# Six columns of so many letters each, as a page of the book has them.
def six_columns(letters: int) -> str:
    cells = f"<td>{'a' * letters}</td>" * 6
    table = f"<table><thead><tr>{'<th>a</th>' * 6}</tr></thead><tbody><tr>{cells}</tr></tbody>"
    script = (BOOK / "assets" / "cards.js").read_text()
    return f"<article class=bd-article>{table}</table></article><script>{script}</script>"


def test_a_table_with_more_letters_than_a_phone_shows_is_made_cards(window):
    for letters, cards in ((8, 0), (9, 1)):
        window.page.set_content(six_columns(letters))
        assert window.page.locator("table.cards").count() == cards


def test_the_first_page_answers_whether_a_claim_holds(window, origins):
    window.open(f"{origins['file']}/intro.html")
    answers = window.page.locator(".answer:visible")
    for asked, model, task in (
        ("MonoAttn on Inv ReCopy", "MonoAttn", "Inv ReCopy"),  # not the one that stands there first
        ("OneStep attention solves ReCopy at length 100", "OneStepAttn", "ReCopy at length 100"),
    ):
        window.page.locator("#ask-input").fill(asked)
        # The box says how many answers it found when they are unpacked.
        window.page.locator(".ask output", has_text=re.compile(r"\d")).wait_for()
        answer = answers.first.inner_text()
        for word in (model, task, "seeds", "machine", "code", "relength run"):
            assert word in answer, asked
    shown = answers.all_inner_texts()
    window.page.evaluate("delete window.DecompressionStream")  # browsers of before 2023 have none
    window.page.locator("#ask-input").fill("Content on Lookup")
    window.page.locator(".ask output", has_not_text=re.compile(r"\d")).wait_for()
    assert answers.all_inner_texts() == shown


def test_the_ledger_shows_what_is_asked_for_and_can_be_linked_to(window, origins):
    window.open(f"{origins['file']}/claims_ledger.html")
    shown = window.page.locator(".facets:visible")
    everything = shown.count()
    window.page.locator("#ledger-text").fill("OneStepAttn")
    found = shown.count()
    assert 0 < found < everything
    again = window.page.url
    assert again.endswith("text=OneStepAttn")
    window.page.goto("about:blank")
    window.page.goto(again)
    assert shown.count() == found
    window.page.get_by_role("button", name="Show all").click()
    assert shown.count() == everything


FACETS = ("paper", "what", "kind", "verdict", "scale", "severity", "executions", "printed")

# For every button of every facet: how many claims it promises, the classes of those in sight when
# it is pressed, and what the ledger then says.
PRESS = """form => [...form.querySelectorAll("fieldset")].map((facet) =>
  [...facet.querySelectorAll("button")].map((button) => {
    button.click();
    const seen = [...document.querySelectorAll(".facets")].filter((claim) =>
      claim.checkVisibility({ visibilityProperty: true })).map((claim) => claim.className);
    const told = form.querySelector(".ledger-status").textContent;
    button.click();
    return [Number(button.querySelector(".count").textContent), seen, told];
  }))"""


@pytest.mark.weekly  # of a small ledger, tests/test_ledger.py tells the same
def test_the_ledger_shows_the_claims_of_the_facets_that_are_asked_for(looking):
    page = looking("claims_ledger", PLAIN)
    form = page.get_by_role("search", name="Filter the claims")
    button = form.get_by_role("group", name="Kind").get_by_role("button").first
    button.click()
    assert button.get_attribute("aria-pressed") == "true" and "#kind=" in page.url
    button.click()
    page.evaluate(
        "document.querySelectorAll('details:has(.facets)').forEach(d => { d.open = true; })"
    )
    everything = page.locator(".facets").count()
    facets = form.evaluate(PRESS)
    assert len(facets) == len(FACETS)
    for facet, answers in zip(FACETS, facets, strict=True):
        assert len(answers) > 1
        assert sum(promised for promised, _, _ in answers) == everything
        values = [
            set(re.findall(rf"f-{facet}-([a-z-]+)", " ".join(seen))) for _, seen, _ in answers
        ]
        assert all(len(value) == 1 for value in values) and len(set().union(*values)) == len(values)
        for promised, seen, told in answers:
            assert len(seen) == promised
            assert told == f"{promised} of {everything} claims fit."


def test_a_wide_table_takes_the_margin_and_the_list_of_contents_makes_room(window, origins):
    window.open(f"{origins['file']}/memreasoner_overview.html")
    table = window.page.locator("#tab-headline-memreasoner-table-2")
    table.scroll_into_view_if_needed()
    box = table.locator("xpath=..")
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
    assert (
        box.bounding_box()["width"]
        > window.page.locator(".bd-article p").first.bounding_box()["width"]
    )
    window.page.locator(".bd-sidebar-secondary.hide").wait_for(state="attached")


def test_the_columns_of_the_ledgers_numbers_are_all_in_sight(looking):
    page = looking("claims_ledger", PLAIN)
    folder = page.locator(".ledger-numbers:has(table)").first
    folder.locator("summary").click()
    box, last = folder.locator(".wide"), folder.locator("thead th").last
    box.scroll_into_view_if_needed()
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
    assert last.inner_text() == "claim"
    seen = """e => {
      const { right, top } = e.getBoundingClientRect();
      return e.contains(document.elementFromPoint(right - 9, top + 9));
    }"""
    assert last.evaluate(seen)


# The words of commands that take more than one line although they are shorter than one.
BROKEN = """codes => codes.flatMap((code) => {
  const line = code.closest("p, dd, figcaption, div").clientWidth * 0.6;
  const texts = document.createTreeWalker(code, NodeFilter.SHOW_TEXT), broken = [];
  for (let text = texts.nextNode(); text; text = texts.nextNode())
    for (const word of text.data.matchAll(/\\S+/g)) {
      const range = document.createRange();
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      const boxes = [...range.getClientRects()].filter((box) => box.width);
      const lines = new Set(boxes.map((box) => box.top)).size;
      if (lines > 1 && boxes.reduce((sum, box) => sum + box.width, 0) < line) broken.push(word[0]);
    }
  return broken;
})"""


@pytest.mark.parametrize("name", ["intro", "rerun", "guide_verify"])
def test_on_a_phone_no_option_of_a_command_is_broken(looking, name):
    page = looking(name, View("light", PHONE))
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    codes = page.locator("main code:visible").filter(has_text="relength")
    assert codes.count() and codes.evaluate_all(BROKEN) == []


def test_on_paper_figures_have_a_white_ground_and_all_of_their_labels(looking):
    page = looking("intro", View("dark", 650))  # A4 without its margins
    page.emulate_media(media="print")
    picture = page.locator(".rl .picture").first
    assert "#ffffff" in picture.evaluate("e => getComputedStyle(e).getPropertyValue('--rl-page')")
    left = page.locator(".bd-article").bounding_box()["x"]
    labels = picture.locator(".wide text").evaluate_all(
        "all => all.map(e => e.getBoundingClientRect().left)"
    )
    assert min(labels) >= left
