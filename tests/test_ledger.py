"""The ledger shows every claim with what it rests on, and its filter works without a server."""

import json
import re
import subprocess
from itertools import pairwise
from pathlib import Path

import handmade
import pandas as pd
import pytest
import yaml
from browser import View, Window
from lxml.html import HtmlElement, fragment_fromstring

from relength.paths import BOOK
from relength.report import boxes, ledger, margins, tables
from relength.report.deviations import anchor
from relength.report.markdown import grid, plain, run_link, slug
from relength.report.scoreboard import Survey, united
from relength.runs.store import Store, frame
from relength.specs import published, registry
from relength.specs.experiments import experiment
from relength.specs.margins import MARGINS, load_margins, margins_hash
from relength.verdicts import claims, deviations, margin_history
from relength.verdicts.claim_models import (
    CostPart,
    CountPart,
    LevelPart,
    OrderPart,
    TrendPart,
    ValuePart,
)

pytestmark = pytest.mark.usefixtures("claimed")

EXPERIMENT = experiment("mla_table2")
CELLS = [
    *(("copy", test) for test in ("15", "30", "100")),
    *(("lookup", test) for test in ("7", "9", "11")),
]


def survey(records) -> Survey:
    runs, nothing = frame(records), pd.DataFrame()
    judged = united(claims.ledger(claims.load(paper), runs) for paper in claims.papers())
    return Survey(nothing, judged, nothing, runs, Store("nowhere"))


@pytest.fixture(scope="module")
def solved(claimed) -> Survey:
    """Five seeds of two cells of Content, all perfect."""
    return survey(
        handmade.record(spec, lambda *_: 1.0)
        for spec in EXPERIMENT.specs("reduced", range(5))
        if spec.model.name == "Content" and spec.task.name in ("copy", "lookup")
    )


@pytest.fixture(scope="module")
def text(solved) -> str:
    return ledger.claims_list(solved)


@pytest.fixture(scope="module")
def empty(claimed) -> Survey:
    return survey([])


# What is on the page


def test_the_filter_is_told_the_names_of_papers(text):
    place = fragment_fromstring(re.search(r'<div id="ledger-filter".*?</div>', text).group())
    names = json.loads(place.get("data-papers"))
    assert names == {name: paper.short for name, paper in registry.papers().items()}


def test_every_claim_is_there_once_with_what_it_can_be_filtered_by(text, solved):
    sentences = solved.ledger[solved.ledger["prose"]]
    for claim in sentences["claim"]:
        assert text.count(f":name: claim-{claim}\n") == 1
    boxes_of_sentences = re.findall(r"class-container: claim (facets [^\n]+)", text)
    rows = [
        e.get("class")
        for html in raw(text)
        for e in html.xpath(".//span[contains(@class, 'facets')]")
    ]
    marked = boxes_of_sentences + rows
    assert len(marked) == len(solved.ledger)
    for classes in marked:
        for facet in (
            *("paper", "kind", "verdict", "scale", "what"),
            *("severity", "executions", "printed"),
        ):
            assert len(re.findall(rf"f-{facet}-[a-z0-9-]+", classes)) == 1, classes


def raw(text: str) -> list[HtmlElement]:
    """The pieces of HTML in a page of Markdown."""
    found = re.findall(r"```\{raw\} html\n(.*?)\n```$", text, flags=re.DOTALL | re.MULTILINE)
    return [fragment_fromstring(html, create_parent=True) for html in found]


def entry(text: str, claim: str) -> str:
    start = text.index(f":name: claim-{claim}\n")
    return text[start : text.index("\n::::::\n", start)]


def test_a_claim_names_its_query_its_runs_and_its_margins(text, solved):
    body = entry(text, "mla-003")
    assert "{doc}`mla-table-2 </executed/mla_table2>`" in body
    assert {"`mla_table2`", "`exact_match`", "`released`"} <= set(re.findall("`[a-z0-9_]+`", body))
    wanted = solved.runs[solved.runs["model"] == "Content"]["key"].unique()
    assert len(wanted) == 10
    for key in wanted:
        assert f'<a href="provenance.html#run-{key}">' in body
    used = solved.runs[solved.runs["model"] == "Content"].drop_duplicates("key")
    assert ledger.made_under(used.itertuples()) == {margins_hash(): 10}
    assert margins.link(margins_hash()) in body


def test_a_claim_without_runs_says_so_and_still_has_its_query(text):
    body = entry(text, "mla-010")
    assert "provenance.html" not in body and "<margin-history>`" in body
    (listed,) = raw(body)
    said = [item.text_content() for item in listed.iter("li")]
    (part,) = (words for words in said if words.startswith("OneStepAttn on recopy"))
    printed = ["100", "15", "100", "30", "100", "100"]  # value and length, in turn
    assert part.endswith("not run") and re.findall(r"\d+", part) == printed


def test_the_claim_as_written_is_the_claim_in_the_file():
    written = ledger._written("mla")
    entries = yaml.safe_load((claims.FOLDER / "mla.yml").read_text())["claims"]
    assert {name: yaml.safe_load(lines) for name, lines in written.items()} == {
        e["id"]: e for e in entries
    }


def test_printed_numbers_link_to_the_runs_of_their_cell(text, solved):
    runs = solved.runs.query("model == 'Content' and task == 'copy'")
    (row,) = (
        found.getparent().getparent()
        for html in raw(text)
        for found in html.xpath(".//*[@id='claim-mla-table-2-content-copy-30']")
    )
    links = [link.get("href") for link in row.iter("a")]
    keys = runs.drop_duplicates("key")["key"]
    assert links == [f"provenance.html#run-{key}" for key in keys]
    assert claims.EXCEEDED in row.text_content()


def test_an_empty_store_gives_a_ledger_in_which_nothing_ran(empty):
    text = ledger.claims_list(empty)
    shown = re.sub(r"base64,[^\"]*", "", text)  # what can be downloaded is packed
    assert "provenance.html" not in shown and "nan" not in shown
    assert set(re.findall(r"f-verdict-([a-z-]+)", text)) == {"not-run", "not-testable"}
    assert set(re.findall(r"f-scale-([a-z]+)", text)) == {"none"}


@pytest.mark.parametrize(
    ("part", "facts"),
    [
        (ValuePart(model="A", task="t", printed={"9": 1.5}), ("A", "t", "1.5", "9")),
        (
            ValuePart(model="A", task="t", printed={"9": 50.0}, spread=2.0, n=5),
            ("A", "t", "50", "2", "9"),
        ),
        (
            LevelPart(model="A", task="t", tests=("9", "10"), level="failed"),
            ("A", "t", "failed", "9", "10"),
        ),
        (
            TrendPart(model="A", task="t", tests=("9", "10"), direction="falls"),
            ("A", "t", "falls", "9", "10"),
        ),
        (CountPart(model="A", tests={"t": ("9",)}, count=1), ("A", "1")),
        (
            OrderPart(
                model="A", other="B", relation="better", by="tasks_solved", tests={"t": ("9",)}
            ),
            ("A", "B", "better"),
        ),
        (CostPart(model="A", than="B", task="t", ratio=0.8), ("A", "B", "0.8")),
    ],
)
def test_what_a_part_expects_has_its_names_and_numbers(part, facts):
    assert set(facts) <= set(re.findall(r"[\d.]+|\w+", ledger.expected(part)))


def test_boxes_show_claims_and_differences_that_exist_and_are_on_a_page(solved):
    made, judged = set(published.prose_claims()["claim_id"]), set(solved.ledger["claim"])
    pages = "".join(page.read_text() for page in BOOK.glob("*.md"))
    for name, shown in registry.united("claims").items():
        assert set(shown) <= made
        box = boxes.PASSAGES[name](solved)
        for claim in judged & set(shown):
            assert f"{{ref}}`{claim} <claim-{claim}>`" in box
    papers = registry.papers().values()
    effects = [(paper.name, *one) for paper in papers for one in paper.effects.items()]
    for paper, name, titles in effects:
        entries = {entry.title: entry for entry in deviations.load(paper)}
        box = boxes.PASSAGES[name](solved)
        for each in titles:
            assert entries[each].measures, each
            assert f"<{anchor(paper, entries[each])}>`" in box
    for name in (*registry.united("claims"), *registry.united("effects")):
        assert f"executed/{name}.md" in pages


def test_a_page_says_in_short_how_its_claims_stand_and_which_numbers_are_met(
    solved, empty, tmp_path
):
    store = Store(tmp_path)
    for spec in EXPERIMENT.specs("reduced", range(2)):
        if spec.model.name == "Content" and spec.task.name in ("copy", "lookup"):
            store.append("mla", handmade.record(spec, lambda *_: 1.0))
    claims_there = solved.ledger.query("prose and artifact == 'mla-table-2'")
    assert boxes.verdicts_on("mla_table2", solved) == claims_there["label"].value_counts().to_dict()
    # Perfect are the runs of Content on Copy and Lookup, where the paper prints 0 to 33.3.
    found = boxes.numbers_on("mla_table2", store)
    printed = [tables.printed("mla-table-2")["Content", *cell] for cell in CELLS]
    between = sum(5 < value < 95 for value in printed)
    assert between == 1
    assert found == boxes.Numbers(144, run=6, near=0, fewest=2, most=2, between=between)
    assert boxes.numbers_on("mla_table2", empty.store) == boxes.Numbers(144, 0, 0, 0, 0)
    exposed = {"verdict": "reproduced", "label": "reproduced", "page": "panm_address_exposure"}
    judged = empty._replace(ledger=empty.ledger.iloc[:3].assign(prose=True, **exposed))
    assert boxes.verdicts_on("panm_address_exposure", judged) == {"reproduced": 3}
    assert boxes.numbers_on("panm_address_exposure", empty.store) is None
    for page, state, verdicts in (
        ("mla_table2", solved, True),
        ("panm_address_exposure", judged, True),
        ("mla_lengths", empty, False),
    ):
        assert (f"<{page}-verdict>" in boxes.in_short(page, state)) == verdicts


@pytest.mark.parametrize(
    ("verdicts", "page", "decide"),
    [
        (["not testable", "inconclusive"], "", True),
        (["not testable", "not testable"], "", False),
        (["reproduced", "reproduced"], "panm_cost", True),  # by no run, and it has no other claim
    ],
)
def test_a_page_counts_what_is_near_where_runs_decide_something(verdicts, page, decide):
    rows = pd.DataFrame({"prose": True, "page": page, "verdict": verdicts})
    assert boxes.runs_decide(rows) == decide
    numbers = pd.DataFrame({"prose": False, "page": "", "verdict": ["not run"]})
    assert boxes.runs_decide(pd.concat([rows, numbers])) == decide


def test_a_page_of_small_models_says_their_size_first(tmp_path, empty):
    """Only MemReasoner's models are out of reach here; without runs there is no size to tell."""
    page, store = "memreasoner_babilong", Store(tmp_path)
    for spec in experiment(page).specs("reduced", [0]):
        record = handmade.record(spec, lambda *_: 0.5, experiment=page)
        store.append("memreasoner", {**record, "parameters": 680_000})
    said = boxes.in_short(page, empty._replace(store=store)).splitlines()[1]
    assert said.partition(".** ")[2].startswith("Ours are small models")
    assert handmade.amounts(said)[:2] == [0.68, 1400]
    beyond = boxes.in_short("memreasoner_losses", empty._replace(store=store))
    assert "small models" in beyond  # a page without a table of the paper
    assert "small models" not in boxes.in_short(page, empty)
    assert "small models" not in boxes.in_short("mla_table2", empty)


def test_text_that_is_not_markup():
    assert plain("a_b *c* [d] $e$ <f> `g`") == r"a\_b \*c\* \[d\] \$e\$ \<f\> \`g\`"
    assert slug("Sequence or token accuracy?") == "sequence-or-token-accuracy"
    assert grid(("a",), [("x | y\nz",), (None,)]).splitlines()[2:] == ["| x \\| y z |", "| – |"]
    assert run_link("abc", "0") == '<a href="provenance.html#run-abc">0</a>'


# The history of the margins


@pytest.fixture
def repository(tmp_path) -> Path:
    """A checkout whose margins were committed, changed, and commented."""

    def git(*arguments: str) -> None:
        who = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
        subprocess.run(["git", "-C", str(tmp_path), *who, *arguments], check=True)

    file = tmp_path / "claims" / "margins.yml"
    file.parent.mkdir()
    first = MARGINS.read_text()
    git("init", "--quiet")
    for content, subject in (
        (first, "First"),
        (first.replace("absolute: 5.0}", "absolute: 3.0}"), "Stricter | accuracy"),
        (first.replace("absolute: 5.0}", "absolute: 3.0}") + "# a comment\n", "Say more"),
    ):
        file.write_text(content)
        git("add", ".")
        git("commit", "--quiet", "--message", subject)
    return tmp_path


def made_under(*fingerprints: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "margins": fingerprints,
            "created": [f"2026-0{i + 1}-01T00:00:00Z" for i in range(len(fingerprints))],
        }
    )


def of(repository: Path, runs: pd.DataFrame) -> margin_history.History:
    return margin_history.history(runs, repository / "claims" / "margins.yml", repository)


def test_the_history_has_every_committed_version_and_what_it_changed(repository):
    found = of(repository, made_under())
    assert found.complete
    assert [v.subject for v in found.versions] == ["First", "Stricter | accuracy", "Say more"]
    assert found.versions[-1].fingerprint == margins_hash(repository / "claims" / "margins.yml")
    changes = [margin_history.changes(a, b) for a, b in pairwise(found.versions)]
    assert changes == [["measures accuracy absolute: 5.0 to 3.0"], []]


def test_states_of_the_file_that_are_said_to_have_the_same_margins_do():
    """A margin is what both states have: a field that is newer than one of them is no change."""
    found = margin_history.history(made_under())
    if not found.complete:
        pytest.skip("the checkout has no history of the margins")
    known = {version.fingerprint: version.content for version in found.versions}
    for fingerprint in load_margins().same_margins:
        then = known[fingerprint]
        shared = then.model_fields_set - {"same_margins"}
        assert shared > {"measures", "levels"}
        assert then.model_dump(include=shared) == load_margins().model_dump(include=shared)


def test_a_version_that_is_not_committed_comes_last(repository):
    file = repository / "claims" / "margins.yml"
    file.write_text(file.read_text().replace("absolute: 3.0}", "absolute: 4.0}"))
    *_, last = of(repository, made_under()).versions
    assert last.commit is None and last.content.measures["accuracy"].absolute == 4.0


def test_without_git_the_records_tell_the_versions(tmp_path):
    file = tmp_path / "margins.yml"
    file.write_text(MARGINS.read_text())
    current = margins_hash(file)
    found = margin_history.history(made_under("a" * 64, current, current), file, tmp_path)
    assert not found.complete
    assert [v.fingerprint for v in found.versions] == ["a" * 64, current]
    assert [v.since for v in found.versions] == ["2026-01-01", "2026-02-01"]
    assert found.versions[-1].content == load_margins()
    assert margin_history.changes(*found.versions) is None


def test_a_shallow_checkout_is_not_the_whole_history(repository, tmp_path_factory):
    clone = tmp_path_factory.mktemp("shallow") / "clone"
    source = repository.as_uri()
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", source, str(clone)], check=True)
    found = of(clone, made_under())
    assert not found.complete and len(found.versions) == 1


def test_the_table_of_versions_counts_the_runs_under_each(solved, monkeypatch):
    monkeypatch.setattr(margin_history, "_from_git", lambda *_: ([], False))
    assert not margin_history.history(solved.runs).complete
    text = margins.versions(solved)
    (row,) = [line for line in text.splitlines() if f'id="margins-{margins_hash()[:8]}"' in line]
    assert row.endswith("| 10 |")


# The filter, in a browser

CLAIM = """<details class="claim facets f-paper-{paper} f-kind-{kind} f-verdict-{verdict}
  f-scale-{scale} f-what-sentence f-severity-does-not-apply f-executions-{executions}
  f-printed-does-not-apply" id="claim-{id}"><summary><span class="sd-summary-text">{id}
  {words}</span></summary><p>body</p></details>"""
CLAIMS = [
    ("a-1", "mla", "value", "reproduced", "paper", "fragile", "copies"),
    ("a-2", "mla", "order", "not-run", "none", "no-others", "sorts"),
    ("b-1", "panm", "value", "not-run", "none", "no-others", "copies"),
]
NUMBER = """<tr><td><span class="facets f-paper-mla f-kind-value f-verdict-{verdict}
  f-scale-paper f-what-number f-severity-could-hardly-fail f-executions-stable
  f-printed-between-5-and-95">{test}</span></td></tr>"""
PAGE = """<!doctype html><html lang="en" data-theme="light"><title>t</title>
<style>{style}</style><main>
<div id="ledger-filter" data-papers='{{"mla": "First", "panm": "Second"}}'></div>
<div class="ledger-group">{claims}
<details class="claim ledger-numbers"><summary><span class="sd-summary-text">numbers</span>
</summary><table class="sortable"><thead><tr><th>test</th></tr></thead><tbody>{numbers}</tbody>
</table></details></div><script>{script}</script></main></html>"""


def small_ledger(file: Path, numbers: list[tuple[str, str]]) -> str:
    """The address of a small ledger: claims in words, and a table of (verdict, test)."""
    fields = ("id", "paper", "kind", "verdict", "scale", "executions", "words")
    assets = [(BOOK / "assets" / f).read_text() for f in ("book.css", "tables.js", "ledger.js")]
    file.write_text(
        PAGE.format(
            claims="".join(CLAIM.format(**dict(zip(fields, c, strict=True))) for c in CLAIMS),
            numbers="".join(NUMBER.format(verdict=verdict, test=test) for verdict, test in numbers),
            style=assets[0],
            script="".join(assets[1:]),
        )
    )
    return file.as_uri()


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> str:
    return small_ledger(
        tmp_path_factory.mktemp("page") / "ledger.html", [("reproduced", "copy/15")]
    )


@pytest.fixture
def page(chromium, address):
    window = Window(chromium, View("light", 1440))
    window.open(address)
    yield window.page
    assert window.complaints == []
    window.context.close()


def shown(page) -> list[str]:
    return page.locator("details.claim.facets:visible").evaluate_all("all => all.map(e => e.id)")


def press(page, name: str) -> None:
    """As somebody without a mouse does."""
    page.get_by_role("button", name=re.compile(f"^{name} ")).focus()
    page.keyboard.press("Enter")


@pytest.mark.browser
def test_claims_are_filtered_from_a_folder_and_by_keyboard_alone(page):
    assert len(shown(page)) == 3
    press(page, "not run")
    assert shown(page) == ["claim-a-2", "claim-b-1"]
    assert not page.locator(".ledger-numbers").is_visible()
    press(page, "Second")
    assert shown(page) == ["claim-b-1"]
    assert page.get_by_role("status").inner_text() == "1 of 4 claims fit."
    assert page.url.endswith("#paper=panm&verdict=not-run")
    page.get_by_role("button", name="Show all").press("Enter")
    assert len(shown(page)) == 3 and "=" not in page.url
    press(page, "fragile")
    assert shown(page) == ["claim-a-1"] and page.url.endswith("#executions=fragile")
    press(page, "fragile")
    press(page, "between 5 and 95")
    assert shown(page) == [] and page.locator(".ledger-numbers").is_visible()
    page.get_by_role("button", name="Show all").press("Enter")
    page.keyboard.type("Copies")
    assert shown(page) == ["claim-a-1", "claim-b-1"]


@pytest.mark.browser
def test_an_address_restores_a_filter_or_opens_one_claim(page, address):
    page.goto(f"{address}#verdict=reproduced,contradicted&text=copies")
    page.wait_for_function("document.querySelector('[role=status]').textContent.startsWith('1 of')")
    assert shown(page) == ["claim-a-1"]
    pressed = page.locator("button[aria-pressed=true]").all_inner_texts()
    assert [text.split()[0] for text in pressed] == ["reproduced"]
    page.goto(f"{address}#claim-b-1")
    page.wait_for_function("document.getElementById('claim-b-1').open")
    assert len(shown(page)) == 3


@pytest.mark.browser
def test_what_a_filter_left_out_no_other_filter_brings_back(page, tmp_path):
    numbers = [
        (verdict, f"{task}/{length}")
        for verdict in ("reproduced", "inconclusive")
        for task in ("copy", "lookup")
        for length in (15, 30, 100)
    ]
    page.goto(small_ledger(tmp_path / "long.html", numbers))
    page.locator(".ledger-numbers summary").click()
    rows, tools = page.locator("tbody tr:visible"), page.locator(".table-tools")
    own, status = tools.get_by_label("Filter"), tools.locator("output")

    def downloaded() -> list[str]:
        with page.expect_download() as started:
            tools.get_by_role("button", name="Download CSV").click()
        return Path(started.value.path()).read_text().split()[1:]

    wanted = ["copy/15", "copy/30", "copy/100"]
    press(page, "reproduced")
    own.fill("copy")
    assert rows.all_inner_texts() == downloaded() == wanted
    assert status.inner_text() == "3 of 12 rows"
    press(page, "inconclusive")  # either verdict
    assert rows.all_inner_texts() == downloaded() == wanted * 2
    press(page, "reproduced")
    assert rows.all_inner_texts() == downloaded() == wanted
    own.fill("")
    assert len(downloaded()) == 6 and status.inner_text() == "6 of 12 rows"
    page.get_by_role("button", name="Show all").click()
    assert len(downloaded()) == 12 and status.inner_text() == "12 rows"
