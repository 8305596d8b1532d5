// The box on the landing page: claims are found by the words of a question. Every word that a claim has
// counts, rarer ones more; numbers have to match as wholes. Without a question the first answers show.
(() => {
  const SHOWN = 6;
  const SILENT = new Set(
    "a an and any at by can do does for good has have hold holds if in is it length of on one or really reproduced the they to true what when which who with work works".split(" "),
  );

  const tokens = (words) =>
    words
      .toLowerCase()
      .replace(/one[\s-]?step/g, "onestep")
      .replace(/bi-relative/g, "birelative")
      .match(/[\p{L}\p{N}.]+/gu) ?? [];

  const start = (box) => {
    const input = box.querySelector("input");
    const status = box.querySelector("output");
    const list = box.querySelector(".answers");
    const answers = [...list.querySelectorAll(".answer")].map((node) => ({
      node,
      words: new Set(tokens(node.dataset.words)),
    }));
    const frequency = new Map();
    answers.forEach(({ words }) => words.forEach((w) => frequency.set(w, (frequency.get(w) ?? 0) + 1)));
    const weight = (word) => Math.log(1 + answers.length / (frequency.get(word) ?? 1));

    const matches = (words, asked) =>
      words.has(asked) ||
      (!/^\d/.test(asked) && asked.length > 3 && [...words].some((word) => word.startsWith(asked)));

    const show = () => {
      const asked = tokens(input.value).filter((word) => !SILENT.has(word));
      let ranked = answers;
      if (asked.length) {
        ranked = answers
          .map((answer) => {
            const hits = asked.filter((word) => matches(answer.words, word));
            const score = hits.reduce((sum, word) => sum + weight(word), 0) - answer.words.size / 400;
            const waits = answer.node.querySelector(".verdict-not-run") ? 0.05 : 0; // as good, but nothing to show
            return { ...answer, score: hits.length ? score - waits : 0 };
          })
          .filter((answer) => answer.score > 0)
          .sort((a, b) => b.score - a.score);
      }
      const best = ranked.slice(0, SHOWN);
      answers.forEach(({ node }) => (node.hidden = true));
      best.forEach(({ node }, place) => {
        node.hidden = false;
        if (asked.length) node.open = place === 0;
        list.append(node);
      });
      status.textContent = asked.length
        ? best.length
          ? `The ${best.length} nearest of ${answers.length} answers`
          : "Nothing like that is judged here; try a model, a task and a length"
        : "";
    };

    if (navigator.clipboard)
      list.querySelectorAll("dd > code").forEach((code) => {
        const copy = Object.assign(document.createElement("button"), { type: "button", textContent: "Copy" });
        copy.addEventListener("click", () =>
          navigator.clipboard.writeText(code.textContent).then(() => (copy.textContent = "Copied")),
        );
        code.after(copy);
      });
    input.addEventListener("input", show);
    box.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
    box.querySelectorAll(".ask-examples button").forEach((button) =>
      button.addEventListener("click", () => {
        input.value = button.textContent;
        show();
      }),
    );
    box.classList.add("ready");
    show();
  };

  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".ask").forEach(start));
})();
