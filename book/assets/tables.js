// Tables with the class "sortable": a click (or Enter) on a column head sorts by that column.
// Numbers sort as numbers, everything else as text; a second click turns the order around.
(() => {
  const numeric = (text) => {
    const match = text.replace(/[,\u2009\u00a0]/g, "").match(/^[^\d-]{0,2}(-?\d+(?:\.\d+)?)/);
    return match ? parseFloat(match[1]) : NaN;
  };
  const compare = (a, b) => {
    const [x, y] = [numeric(a), numeric(b)];
    if (!Number.isNaN(x) && !Number.isNaN(y) && x !== y) return x - y;
    return a.localeCompare(b, "en", { numeric: true });
  };
  const sort = (table, head, column) => {
    const descending = head.getAttribute("aria-sort") === "ascending";
    table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const body = table.tBodies[0];
    const text = (row) => row.cells[column].textContent.trim();
    const empty = (row) => /^[–-]?$/.test(text(row));
    [...body.rows]
      .sort((a, b) => {
        if (empty(a) !== empty(b)) return empty(a) ? 1 : -1; // empty cells stay at the end
        return descending ? compare(text(b), text(a)) : compare(text(a), text(b));
      })
      .forEach((row) => body.append(row));
  };
  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("table.sortable").forEach((table) => {
      table.querySelectorAll("thead th").forEach((head, column) => {
        const button = document.createElement("button");
        button.type = "button";
        button.className = "sort";
        button.title = "Sort by this column";
        button.append(...head.childNodes);
        button.addEventListener("click", () => sort(table, head, column));
        head.append(button);
      });
    });
  });
})();
