// The claims ledger: filters by paper, kind, verdict, scale, what is told beside a verdict, and words. Without this script every claim is
// shown. The state is kept in the address (#paper=mla&verdict=not-run,inconclusive&text=copy), so that a
// filtered ledger can be linked to; an address of a single claim (#claim-mla-010) opens that claim
// or, for a printed number, the table that it is in.
(() => {
  const FACETS = [
    ["paper", "Paper"],
    ["what", "Claims in"],
    ["kind", "Kind"],
    ["verdict", "Verdict"],
    ["scale", "Scale"],
    ["severity", "Number that comes out"],
    ["executions", "With other executions"],
    ["printed", "Printed"],
  ];
  const WORDS = { sentence: "sentences", number: "printed numbers", none: "no runs yet" };

  // A claim is a box of its own or a row of a table; either way one element has the classes f-<facet>-<value>.
  const read = (marked) => {
    const claim = { box: marked.closest("tr") || marked, values: {}, text: "" };
    for (const name of marked.classList) {
      const found = name.match(/^f-([a-z]+)-(.+)$/);
      if (found) claim.values[found[1]] = found[2];
    }
    claim.text = claim.box.textContent.toLowerCase();
    return claim;
  };

  const start = () => {
    const place = document.getElementById("ledger-filter");
    if (!place) return;
    const names = JSON.parse(place.dataset.papers); // {paper: as tables abbreviate it}
    const worded = (value) => names[value] || WORDS[value] || value.replaceAll("-", " ");
    const claims = [...document.querySelectorAll(".facets")].map(read);
    const folders = [...document.querySelectorAll(".ledger-numbers")].map((folder) => {
      const note = document.createElement("span");
      folder.querySelector("summary .sd-summary-text").append(note);
      return { folder, rows: [...folder.querySelectorAll("tbody tr")], note };
    });
    const groups = [...document.querySelectorAll(".ledger-group")];
    const chosen = Object.fromEntries(FACETS.map(([facet]) => [facet, new Set()]));
    const buttons = [];

    const element = (tag, attributes, ...children) => {
      const made = document.createElement(tag);
      for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
      made.append(...children);
      return made;
    };

    const form = element("form", { role: "search", "aria-label": "Filter the claims" });
    const search = element("input", { type: "search", id: "ledger-text", placeholder: "a model, a task, a word" });
    const status = element("p", { role: "status", class: "ledger-status" });
    const clear = element("button", { type: "button", class: "ledger-clear" }, "Show all");
    for (const [facet, title] of FACETS) {
      const counts = new Map();
      claims.forEach(({ values }) => counts.set(values[facet], (counts.get(values[facet]) || 0) + 1));
      const set = element("fieldset", {}, element("legend", {}, title));
      for (const [value, count] of counts) {
        const button = element("button", { type: "button", "aria-pressed": "false" }, worded(value));
        button.append(element("span", { class: "count" }, ` ${count}`));
        button.addEventListener("click", () => {
          if (!chosen[facet].delete(value)) chosen[facet].add(value);
          update();
        });
        buttons.push({ button, facet, value });
        set.append(button);
      }
      form.append(set);
    }
    const words = element("div", { class: "words" }, element("label", { for: "ledger-text" }, "Words"), search, clear);
    form.append(words, status);
    form.addEventListener("submit", (event) => event.preventDefault());
    search.addEventListener("input", () => update());
    clear.addEventListener("click", () => {
      Object.values(chosen).forEach((values) => values.clear());
      search.value = "";
      update();
      search.focus();
    });
    place.replaceWith(form);

    const fits = ({ values, text }) =>
      FACETS.every(([facet]) => !chosen[facet].size || chosen[facet].has(values[facet])) &&
      search.value.toLowerCase().split(/\s+/).every((word) => text.includes(word));

    const show = () => {
      const filtered = search.value.trim() !== "" || FACETS.some(([facet]) => chosen[facet].size);
      let shown = 0;
      claims.forEach((claim) => {
        const fitting = fits(claim);
        claim.box.toggleAttribute("data-left-out", !fitting); // hidden is for the filters of tables.js
        shown += fitting;
      });
      folders.forEach(({ folder, rows, note }) => {
        const fitting = rows.filter((row) => !("leftOut" in row.dataset)).length;
        folder.hidden = !fitting;
        note.textContent = filtered ? ` (${fitting} fit)` : "";
      });
      groups.forEach((group) => (group.hidden = !group.querySelector("details:not([hidden], [data-left-out])")));
      buttons.forEach(({ button, facet, value }) => button.setAttribute("aria-pressed", chosen[facet].has(value)));
      status.textContent = filtered ? `${shown} of ${claims.length} claims fit.` : `All ${claims.length} claims are shown.`;
      clear.disabled = !filtered;
      return filtered;
    };

    const update = () => {
      const filtered = show();
      const state = new URLSearchParams();
      FACETS.forEach(([facet]) => chosen[facet].size && state.set(facet, [...chosen[facet]].join(",")));
      if (search.value.trim()) state.set("text", search.value.trim());
      const address = filtered ? `#${state.toString().replaceAll("%2C", ",")}` : "#";
      history.replaceState(null, "", address);
    };

    const follow = () => {
      const hash = decodeURIComponent(location.hash.slice(1));
      const state = new URLSearchParams(hash.includes("=") ? location.hash.slice(1) : "");
      FACETS.forEach(([facet]) => {
        chosen[facet] = new Set((state.get(facet) || "").split(",").filter(Boolean));
      });
      search.value = state.get("text") || "";
      show();
      const target = hash && !hash.includes("=") && document.getElementById(hash);
      const box = target && (target.closest("details.claim") || target.querySelector("details.claim"));
      if (box) {
        box.open = true;
        (target.closest("tr") || box).scrollIntoView({ block: target.closest("tr") ? "center" : "start" });
      }
    };
    window.addEventListener("hashchange", follow);
    follow();
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
