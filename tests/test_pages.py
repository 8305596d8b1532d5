"""The pages of the built book as files: links, words for pictures, and nothing left over."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urldefrag, urljoin, urlparse

import nbformat
import pytest
from lxml import html
from pages import PAGES, TEMPLATES, toc, unpacked

from relength.paths import NOTEBOOKS

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda p: p.removesuffix(".html"))
NOT_PROSE = "not(ancestor::pre or ancestor::code or ancestor::script or ancestor::style)"
LEFT_OVER = re.compile(r".{0,60}(?:```|:::|\{[a-z:]+\}`).{0,60}")
LARGEST = 48e6  # bytes; each chapter of findings has the figure of its printed numbers


@pytest.fixture(scope="module")
def parsed(book) -> Callable[[str], html.HtmlElement]:
    """Parses a page, once."""
    return cache(lambda page: html.fromstring(unpacked((book / page).read_text())))


@pytest.fixture(scope="module")
def anchors(parsed) -> Callable[[str], set[str]]:
    """List what a link can lead to on a page."""
    return cache(lambda page: set(parsed(page).xpath("//@id | //a/@name")))


@pytest.fixture(scope="module")
def claims(parsed) -> Callable[[str], list[set[str]]]:
    """The facets of every claim on a page."""
    return cache(lambda page: [set(c.split()) for c in parsed(page).xpath(FACETS)])


FACETS = "//@class[contains(concat(' ', ., ' '), ' facets ')]"


def named(picture: html.HtmlElement) -> str:
    """The words that a picture has for those who do not see it."""
    for words in (
        picture.xpath("@alt"),
        picture.xpath("@aria-label"),
        picture.xpath("id(@aria-labelledby)//text()"),
        picture.xpath(".//title//text()"),
    ):
        if words:
            return "".join(words).strip()
    return ""


def nameless(page: html.HtmlElement) -> Iterator[str]:
    """Pictures without words; one inside of something with words of its own is decoration."""
    for picture in page.xpath("//main//img | //main//svg"):
        hidden = picture.xpath("ancestor-or-self::*[@aria-hidden='true'] | ancestor::svg")
        around = picture.xpath("ancestor::*[self::a or self::button or self::summary][1]")
        if hidden or any(e.text_content().strip() or named(e) for e in around):
            continue
        if not named(picture):
            yield html.tostring(picture, encoding="unicode")[:120]


def left_over(page: html.HtmlElement) -> list[str]:
    """Markup in the words that a reader reads or hears."""
    prose = page.xpath(f"//text()[{NOT_PROSE}] | //@alt | //@title | //@aria-label")
    return [found for text in prose for found in LEFT_OVER.findall(text)]


def test_a_bad_page_is_noticed():
    page = html.fromstring(
        "<!doctype html><body><main><img src=a.png><img src=b.png alt=''><svg><g/></svg>"
        "<a href=#a><svg></svg></a><p>See {doc}`a`, <code>{doc}`b`</code> and ::: here</p>"
        "<img src=c.png alt='words'><svg aria-label='words'><svg></svg></svg>"
        "<svg aria-labelledby=t></svg><p id=t>words</p><svg><title>words</title></svg>"
        "<a href=#a><svg></svg>words</a><div aria-hidden=true><img src=d.png></div></main>"
    )
    assert len(list(nameless(page))) == 4
    assert [text.strip() for text in left_over(page)] == ["See {doc}`a`,", "and ::: here"]


def test_the_kinds_of_pages_that_a_browser_opens_are_pages():
    assert {f"{name}.html" for name in TEMPLATES} <= set(toc())


@every_page
def test_pictures_have_words(parsed, page):
    assert list(nameless(parsed(page))) == []


@every_page
def test_no_markup_is_left_for_the_reader_to_read(parsed, page):
    assert left_over(parsed(page)) == []
    # and no warning of a notebook, which would name a folder of the machine that built the book
    assert parsed(page).xpath("//*[contains(concat(' ', @class, ' '), ' stderr ')]") == []


@every_page
def test_what_our_own_book_refers_to_is_there(parsed, page):
    """In a book of fewer records it may be missing: book/_ext/numbering.py."""
    assert parsed(page).xpath("//*[contains(concat(' ', @class, ' '), ' absent ')]//text()") == []


@every_page
def test_links_within_the_book_lead_somewhere(book, parsed, anchors, claims, page):
    here = (book / page).as_uri()
    inside = [urljoin(here, address) for address in parsed(page).xpath("//a/@href")]
    inside = [address for address in inside if address.startswith(book.as_uri())]
    assert len(inside) > len(PAGES) / 2  # the side bar alone has most pages
    assert [address for address in set(inside) if not leads(book, anchors, claims, address)] == []


def leads(book: Path, anchors, claims, address: str) -> bool:
    """Tell whether a file is there, with the place that is named, or claims that a filter shows."""
    place, anchor = urldefrag(address)
    file = Path(unquote(urlparse(place).path))
    target = file.relative_to(book).as_posix()
    if not file.is_file():
        return False
    anchor = unquote(anchor)
    if "=" in anchor:  # a filter of the ledger
        asked = [
            {f"f-{facet}-{v}" for v in values.split(",")} for facet, values in parse_qsl(anchor)
        ]
        return any(all(shown & some for some in asked) for shown in claims(target))
    return not anchor or not target.endswith(".html") or anchor in anchors(target)


def test_the_links_of_answers_that_wait_to_be_asked_for_are_among_those_looked_at(parsed):
    addresses = parsed("intro.html").xpath("//a/@href")
    assert sum("claims_ledger.html#claim-" in address for address in addresses) > 1000


def test_the_book_is_small_enough_to_carry_around(book):
    assert not [*book.rglob("*.map")]
    doubled = [font for font in book.rglob("*.ttf") if font.with_suffix(".woff2").exists()]
    assert not doubled and [*book.rglob("*.woff2")]
    assert sum(file.stat().st_size for file in book.rglob("*") if file.is_file()) < LARGEST


def test_a_downloaded_notebook_is_the_one_of_its_page_without_outputs(book):
    files = sorted((book / "_sources" / "executed").glob("*.ipynb"))
    assert {file.stem for file in files} == {file.stem for file in NOTEBOOKS.glob("*.ipynb")}
    for file in files:
        downloaded = nbformat.read(file, 4)
        nbformat.validate(downloaded)
        code = [cell for cell in downloaded.cells if cell.cell_type == "code"]
        assert code and not any(cell.outputs or cell.execution_count for cell in code)
        ours = nbformat.read(NOTEBOOKS / file.name, 4)
        there = iter([cell.source for cell in downloaded.cells])  # and cells of papermill's
        assert all(cell.source in there for cell in ours.cells)
