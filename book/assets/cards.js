// A table with sentences in it, or with more columns or letters than fit, becomes a list of cards on a
// narrow page (book.css): one per row, every cell with the name of its column. Set as blocks, its parts
// would no longer be those of a table to those who listen, so their roles are written down.
(() => {
  const SENTENCE = 40; // letters, from which a cell is read rather than looked up
  const MANY = 8; // columns, the last of which nobody would find on a phone
  const WIDE = 48; // letters of the widest cells of all columns, of which a phone shows no more
  const text = (cell) => cell.textContent.trim().replace(/\s+/g, " ");
  const ROLES = { table: "table", thead: "rowgroup", tbody: "rowgroup", tr: "row", td: "cell" };

  const prepare = (table) => {
    const rows = [...table.tBodies].flatMap((body) => [...body.rows]);
    if (!table.tHead) return;
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    const told = rows.some((row) => [...row.cells].some((cell) => text(cell).length > SENTENCE));
    const words = heads.map((head) => Math.max(...text(head).split(" ").map((word) => word.length)));
    const widths = words.map((word, i) =>
      rows.reduce((most, row) => Math.max(most, row.cells[i] ? text(row.cells[i]).length : 0), word),
    );
    const wide = widths.reduce((sum, width) => sum + width, 0) > WIDE;
    if (!told && !wide && heads.length < MANY) return;
    rows.forEach((row) => [...row.cells].forEach((cell, i) => (cell.dataset.label = heads[i] ? text(heads[i]) : "")));
    table.classList.add("cards");
    table.role = ROLES.table;
    table.querySelectorAll("thead, tbody, tr, td").forEach((part) => (part.role = ROLES[part.localName]));
    table.querySelectorAll("th").forEach((head) => (head.role = head.closest("thead") ? "columnheader" : "rowheader"));
  };

  document.addEventListener("DOMContentLoaded", () =>
    document.querySelectorAll(".bd-article table:not(.matrix, .highlighttable)").forEach(prepare));
})();
