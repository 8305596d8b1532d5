// A table with sentences in it, or with many columns, becomes a list of cards on a narrow page (book.css):
// one per row, every cell with the name of its column. Set as blocks, its parts would no longer be those
// of a table to those who listen, so their roles are written down.
(() => {
  const SENTENCE = 40; // letters, from which a cell is read rather than looked up
  const MANY = 6; // columns, the last of which nobody would find on a phone
  const text = (cell) => cell.textContent.trim().replace(/\s+/g, " ");
  const ROLES = { table: "table", thead: "rowgroup", tbody: "rowgroup", tr: "row", td: "cell" };

  const prepare = (table) => {
    const rows = [...table.tBodies].flatMap((body) => [...body.rows]);
    if (!table.tHead) return;
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    const told = rows.some((row) => [...row.cells].some((cell) => text(cell).length > SENTENCE));
    if (!told && heads.length < MANY) return;
    rows.forEach((row) => [...row.cells].forEach((cell, i) => (cell.dataset.label = text(heads[i]))));
    table.classList.add("cards");
    table.role = ROLES.table;
    table.querySelectorAll("thead, tbody, tr, td").forEach((part) => (part.role = ROLES[part.localName]));
    table.querySelectorAll("th").forEach((head) => (head.role = head.closest("thead") ? "columnheader" : "rowheader"));
  };

  document.addEventListener("DOMContentLoaded", () =>
    document.querySelectorAll(".bd-article table:not(.matrix, .highlighttable)").forEach(prepare));
})();
