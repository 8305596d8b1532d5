"""A reader with a real browser: opens pages of the built book and notes what there is to notice."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from relength.book import editions
from relength.errors import RelengthError

try:
    CHROMIUM = editions.chromium()
except RelengthError:
    CHROMIUM = None
LEAVES = re.compile(r"^(?!file:|data:|blob:|about:|http://127\.0\.0\.1[:/])")  # this machine
# No name is looked up. (To stop requests one by one would keep the browser from caching any.)
OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
FIRST = 4  # rows of a table, entries of a list, marks of a drawing
ALIKE = 2  # of text that looks the same, the contrast of as many is measured
MORE_OF_A_KIND = ", ".join(
    f"{many}:nth-child(n+{FIRST + 1}):not([data-sample], :has([data-sample]))"
    for many in ("tbody tr", "details", "svg g > *")
)
SAMPLED = """;axe.configure({rules: [
  {id: "color-contrast", selector: "[data-sample]"},
  {id: "link-in-text-block", selector: "a[href][data-sample]"},
]});"""
AXE = {
    "resultTypes": ["violations"],
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    # The theme puts the logo of the side bar outside of every landmark.
    "rules": {"region": {"enabled": False}},
    "preload": False,  # it would read style sheets, which a page opened as a file may not
}
# What is fading in has too little contrast for a moment.
STILL = "*, ::before, ::after { animation: none !important; transition: none !important; }"

READY = """async () => {
  await document.fonts.ready;
  await window.MathJax?.startup?.promise;
}"""

# Runs in the page. What sticks out is text that only scrolling the page would show. A table of
# short cells or an equation may scroll in a box of its own; sentences may not, on a phone at least.
# What is folded is looked at, too.
LOOK = r"""() => {
  const SENTENCE = 40, PHONE = 760; // letters, pixels
  const root = document.documentElement;
  const main = document.querySelector("main");
  const name = (e) => (e.getAttribute("alt") ?? e.getAttribute("aria-label")
    ?? document.getElementById(e.getAttribute("aria-labelledby"))?.textContent
    ?? e.querySelector("title")?.textContent ?? "").trim();
  const brief = (e) => `${e.tagName.toLowerCase()} “${e.textContent.trim().slice(0, 60)}”`;
  const known = new Map();
  const worded_table = (e) => {
    if (!known.has(e)) known.set(e, window.innerWidth < PHONE && [...e.querySelectorAll(
      "table:not(.matrix, .highlighttable) > tbody > tr > *")].some((cell) =>
        cell.textContent.trim().replace(/\s+/g, " ").length > SENTENCE));
    return known.get(e);
  };
  const scrolls = (e) => {
    for (; e && e !== main; e = e.parentElement)
      if (["auto", "scroll"].includes(getComputedStyle(e).overflowX)) return !worded_table(e);
    return false;
  };
  const folded = [...document.querySelectorAll("details:not([open])")];
  folded.forEach((e) => (e.open = true));
  const out = [];
  for (let e = main; e; e = e.parentElement)
    if (e.scrollWidth > e.clientWidth + 1) out.push(`${e.tagName} is ${e.scrollWidth} px wide`);
  const text = "h1, h2, h3, p, li, dt, dd, td, th, figcaption, label, a, button, svg";
  for (const e of main.querySelectorAll(text)) {
    const box = e.getBoundingClientRect();
    if (box.width && box.right > root.clientWidth + 1 && !scrolls(e)) out.push(brief(e));
  }
  folded.forEach((e) => (e.open = false));
  // A picture inside of something with words of its own is decoration.
  const worded = (e) => e && (e.textContent.trim() || name(e));
  const pictures = [...main.querySelectorAll("img, svg")].filter((e) =>
    !e.closest("[aria-hidden=true], mjx-container, svg svg")
    && !worded(e.closest("a, button, summary")));
  return {
    theme: root.dataset.theme,
    background: getComputedStyle(document.body).backgroundColor,
    sticking_out: out,
    nameless: pictures.filter((e) => !name(e)).map((e) => e.outerHTML.slice(0, 120)),
    bad_equations: [...main.querySelectorAll(".math")].filter((e) =>
      !e.querySelector("mjx-assistive-mml") || e.querySelector("mjx-merror")).map(brief),
  };
}"""


# Marks samples of text: the first few of what has the same colours, and the same tags and classes
# above it. Of the cells of a long table or the entries of a ledger these stand for all. What a
# ledger's entry is found by (f-paper-mla and so on) does not change its look. A link that stands
# alone needs no contrast with words beside it, so that it is no sample of those that do.
MARK = r"""(most) => {
  const paths = new WeakMap(), seen = new Map();
  const text = (n) => n.nodeType === Node.TEXT_NODE && n.data.trim();
  const words = (e) => [...e.childNodes].some(text);
  const path = (e) => {
    if (e === document.documentElement) return "";
    if (!paths.has(e)) {
      const own = `${e.tagName}.${[...e.classList].filter((name) => !name.startsWith("f-"))}`;
      paths.set(e, `${path(e.parentElement)} ${own}`);
    }
    return paths.get(e);
  };
  const grounds = new WeakMap();
  const ground = (e) => {
    if (!e) return;
    if (!grounds.has(e)) {
      const colour = getComputedStyle(e).backgroundColor;
      grounds.set(e, colour === "rgba(0, 0, 0, 0)" ? ground(e.parentElement) : colour);
    }
    return grounds.get(e);
  };
  for (const e of document.body.querySelectorAll("*")) {
    if (!(words(e) || e.matches("input, select, textarea")) || !e.checkVisibility()) continue;
    const { color, fill, fontSize, fontWeight, opacity } = getComputedStyle(e);
    const among = e.matches("a") && words(e.parentElement);
    const key = [path(e), color, fill, fontSize, fontWeight, opacity, ground(e), among].join("|");
    seen.set(key, (seen.get(key) ?? 0) + 1);
    if (seen.get(key) <= most) e.setAttribute("data-sample", "");
  }
}"""


class View(NamedTuple):
    """A reader's view of the book: width and theme."""

    theme: str
    width: int

    def __str__(self) -> str:
        return f"{self.theme}-{self.width}"


PHONE, DESK, HEIGHT = 360, 1440, 900  # pixels
VIEWS = tuple(View(theme, width) for theme in ("light", "dark") for width in (PHONE, DESK))
# Contrast depends on the theme and structure on the width; every one of them is in one of these.
AUDITED = (View("light", DESK), View("dark", PHONE))
# How pages are opened, from a server and from a folder: every view from one of them. From a folder
# the audited views are seen, too, when the reader's machine turns dark at dusk or light at dawn.
OPENED = {"server": AUDITED, "file": tuple(view for view in VIEWS if view not in AUDITED)}


@dataclass(frozen=True)
class Visit:
    """The observations of one page in one view.

    complaints  of the browser: errors and warnings of its console, requests that failed
    outside     addresses that the page asked for and that are not on this machine
    """

    complaints: tuple[str, ...]
    outside: tuple[str, ...]
    theme: str
    background: str
    sticking_out: list[str]
    nameless: list[str]
    bad_equations: list[str]


class Window:
    """A browser window of one view that never leaves this machine."""

    def __init__(self, browser, view: View):
        self.theme = view.theme
        self.complaints: list[str] = []
        self.outside: list[str] = []
        size = {"width": view.width, "height": HEIGHT}
        self.context = browser.new_context(color_scheme=view.theme, viewport=size)
        self.context.set_default_timeout(20_000)
        self.page = self.context.new_page()
        self.page.on("request", self._asked)
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        self.page.on("requestfailed", lambda r: self.complaints.append(f"{r.failure}: {r.url}"))
        self.page.on("response", self._answered)
        self.page.on("websocket", lambda socket: self.outside.append(socket.url))

    def _asked(self, request) -> None:
        if LEAVES.match(request.url):
            self.outside.append(request.url)

    def _note(self, message) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def _answered(self, response) -> None:
        if response.status >= 400:
            self.complaints.append(f"{response.status}: {response.url}")

    def open(self, address: str) -> None:
        """Go to a page, in the theme of this window, and wait until its letters and equations are
        there.
        """
        self.page.emulate_media(color_scheme=self.theme)
        self.page.goto(address)
        self.page.add_style_tag(content=STILL)
        self.page.evaluate(READY)

    def look(self) -> Visit:
        """Look at the open page. A complaint that comes later counts for the next look."""
        seen = self.page.evaluate(LOOK)
        return Visit(*self._noted(), **seen)

    def turn(self, theme: str) -> None:
        """The reader's machine turns light or dark: wait until the page has."""
        self.page.emulate_media(color_scheme=theme)
        turned = "theme => document.documentElement.dataset.theme === theme"
        self.page.wait_for_function(turned, arg=theme)

    def _noted(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Complaints and addresses outside since this was asked last."""
        noted = tuple(self.complaints), tuple(self.outside)
        self.complaints.clear()
        self.outside.clear()
        return noted

    def unfold(self) -> None:
        """Open everything on the page that can be unfolded."""
        self.page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")

    def violations(self) -> list[str]:
        """Run axe-core on the open page, everything that can be unfolded being unfolded.

        Of a long table or drawing it sees the first rows or marks and those that look otherwise,
        and of text that looks alike it measures the contrast of the first few: the others are of
        their kind, and take it minutes. The rows and marks that it does not see are removed.
        """
        from axe_playwright_python.base import AXE_SCRIPT
        from axe_playwright_python.sync_playwright import Axe

        # What a side bar has scrolled under its search button can be scrolled out again.
        self.page.evaluate("document.querySelector('.bd-sidebar-primary')?.scrollTo(0, 0)")
        self.unfold()
        self.page.evaluate(MARK, ALIKE)
        self.page.evaluate(
            "alike => document.querySelectorAll(alike).forEach((e) => e.remove())", MORE_OF_A_KIND
        )
        found = Axe(AXE_SCRIPT + SAMPLED).run(self.page, options=AXE)
        return [
            f"{v['id']}: {node['html'][:160]}"
            for v in found.response["violations"]
            for node in v["nodes"]
        ]


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A folder behind a local server; yields its address."""

    class Silent(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = partial(Silent, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
