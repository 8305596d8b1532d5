// Tables with the class "sortable": a click (or Enter) on a column head sorts by that column, a second
// one turns the order around. Above a table of more than a few rows stand a filter, for columns with a
// handful of values a choice among them, and the rows as CSV, as they are filtered and sorted. A table
// inside a figure with its own data link (relength.report.exhibits) gets no second download. Rows that
// the table's filter leaves out are hidden; what a filter of the page's leaves out (ledger.js) has the
// attribute data-left-out, so that neither filter shows what the other took.
(() => {
  const FEW = 8; // rows from which a filter helps
  const CHOICES = 7; // values of a column that are offered as a choice, at most
  const LONGEST = 28; // letters of such a value

  const text = (cell) => cell.textContent.trim().replace(/[ \t\r\n]+/g, " ");
  // A number with its sign or unit, "≈ 12 s", but neither a version, 3.11.7, nor a hash, 296e8a64b2ec.
  const numeric = (words) => {
    const match = words
      .replace(/[,\u2009\u00a0]/g, "")
      .replace(/^\u2212/, "-")
      .match(/^[^\w-]{0,2}(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?!\w|\.\d)/i);
    return match ? parseFloat(match[1]) : NaN;
  };
  const value = (row, column) => row.cells[column].dataset.value ?? text(row.cells[column]);
  const isEmpty = (words) => /^[–-]?$/.test(words);
  const collator = new Intl.Collator("en", { numeric: true }); // making one takes as long as a hundred uses
  // Numbers come before words, so that there is one order whatever a column mixes.
  const compare = (a, b) => {
    const [x, y] = [numeric(a), numeric(b)];
    if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
    if (x < y || x > y) return x - y;
    return collator.compare(a, b);
  };

  const sort = (table, heads, column) => {
    const head = heads[column];
    const descending = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const key = new Map([...table.tBodies[0].rows].map((row) => [row, value(row, column)]));
    // A cell without its own value counts as empty where others have one: "not run" is no number.
    const measured = [...key.keys()].some((row) => row.cells[column].dataset.value !== undefined);
    const missing = (row) =>
      isEmpty(key.get(row)) || (measured && row.cells[column].dataset.value === undefined);
    const sorted = [...key.keys()].sort((a, b) => {
      if (missing(a) !== missing(b)) return missing(a) ? 1 : -1; // these stay at the end
      return (descending ? -1 : 1) * compare(key.get(a), key.get(b));
    });
    table.tBodies[0].append(...sorted);
  };

  const isShown = (row) => !row.hidden && !("leftOut" in row.dataset);

  const csv = (table, heads) => {
    const quote = (words) => (/[",\n]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words);
    const rows = [...table.tBodies[0].rows].filter(isShown);
    const lines = [heads.map(text), ...rows.map((row) => [...row.cells].map(text))];
    return lines.map((line) => line.map(quote).join(",")).join("\n") + "\n";
  };

  const element = (name, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };

  const choices = (rows, column) => {
    const found = new Set();
    for (const row of rows) {
      const words = text(row.cells[column]);
      if (isEmpty(words)) continue;
      if (words.length > LONGEST || found.add(words).size > CHOICES) return [];
    }
    const all = [...found].sort(compare);
    return all.length > 1 && !all.some((words) => /^[\d.,\s%<>|–-]+$/.test(words)) ? all : [];
  };

  const tools = (table, heads) => {
    const rows = [...table.tBodies[0].rows];
    const bar = element("div", { className: "table-tools" });
    const status = element("output");
    const filters = [];
    const count = () => {
      const shown = rows.filter(isShown).length;
      status.textContent = shown === rows.length ? `${shown} rows` : `${shown} of ${rows.length} rows`;
    };
    const apply = () => {
      rows.forEach((row) => (row.hidden = !filters.every((passes) => passes(row))));
      count();
    };
    new MutationObserver(count).observe(table.tBodies[0], { subtree: true, attributeFilter: ["data-left-out"] });
    if (rows.length > FEW) {
      const search = element("input", { type: "search", oninput: apply });
      filters.push((row) => {
        const words = text(row).toLowerCase();
        return search.value.toLowerCase().split(/\s+/).every((part) => words.includes(part));
      });
      bar.append(element("label", {}, "Filter", search));
      heads.forEach((head, column) => {
        const all = table.classList.contains("matrix") ? [] : choices(rows, column); // of two numbers a cell
        if (!all.length) return;
        const select = element("select", { onchange: apply }, element("option", { value: "" }, "all"));
        all.forEach((words) => select.append(element("option", { value: words }, words)));
        filters.push((row) => !select.value || text(row.cells[column]) === select.value);
        bar.append(element("label", {}, text(head), select));
      });
    }
    if (!table.closest("figure.rl")) {
      const save = () => {
        const name = (table.id || table.closest("[id]")?.id || "table").replace(/[^\w-]+/g, "-");
        const content = new Blob([csv(table, heads)], { type: "text/csv" });
        const link = element("a", { href: URL.createObjectURL(content), download: `${name}.csv` });
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 1000);
      };
      bar.append(element("button", { type: "button", onclick: save }, "Download CSV"));
    }
    if (!bar.childElementCount) return;
    if (filters.length) bar.append(status);
    apply();
    const box = table.closest(".scroll") ?? table;
    box.before(bar);
  };

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("table.sortable").forEach((table) => {
      if (!table.tHead || !table.tBodies.length) return;
      const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
      tools(table, heads);
      heads.forEach((head, column) => {
        const button = element("button", { type: "button", className: "sort" });
        button.title = "Sort by this column";
        button.append(...head.childNodes);
        button.addEventListener("click", () => sort(table, heads, column));
        head.append(button);
      });
    });
  });
})();
