// The box on the landing page: claims are found by the words of a question. Every word that a claim has
// counts, rarer ones more; numbers have to match as wholes. Without a question the first answers show,
// which are those that stand on the page; the others are unpacked when somebody asks.
(() => {
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
    const packed = list.querySelector("script");
    const first = [...list.querySelectorAll(".answer")];

    const unpack = async () => {
      const bytes = Uint8Array.from(atob(packed.textContent), (letter) => letter.charCodeAt(0));
      const html = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      const template = document.createElement("template");
      template.innerHTML = await new Response(html).text();
      return [...template.content.querySelectorAll(".answer")];
    };

    let known; // the words of every answer, read when somebody asks
    const read = async () => {
      const answers = [...first, ...(await unpack())].map((node) => ({
        node,
        words: new Set(tokens(node.dataset.words)),
      }));
      const frequency = new Map();
      answers.forEach(({ words }) => words.forEach((w) => frequency.set(w, (frequency.get(w) ?? 0) + 1)));
      return { answers, weight: (word) => Math.log(1 + answers.length / (frequency.get(word) ?? 1)) };
    };

    const matches = (words, asked) =>
      words.has(asked) ||
      (!/^\d/.test(asked) && asked.length > 3 && [...words].some((word) => word.startsWith(asked)));

    const nearest = (asked, { answers, weight }) =>
      answers
        .map(({ node, words }) => {
          const hits = asked.filter((word) => matches(words, word));
          const score = hits.reduce((sum, word) => sum + weight(word), 0) - words.size / 400;
          const waits = node.querySelector(".verdict-not-run") ? 0.05 : 0; // as good, but nothing to show
          return { node, score: hits.length ? score - waits : 0 };
        })
        .filter((answer) => answer.score > 0)
        .sort((a, b) => b.score - a.score)
        .slice(0, first.length)
        .map((answer) => answer.node);

    const show = async () => {
      const question = input.value;
      const asked = tokens(question).filter((word) => !SILENT.has(word));
      if (asked.length && !window.DecompressionStream) {
        status.textContent = "This browser cannot unpack the answers: the ledger has every claim";
        return;
      }
      const all = asked.length ? await (known ??= read()) : undefined;
      if (input.value !== question) return; // more was typed meanwhile
      const best = asked.length ? nearest(asked, all) : first;
      list.replaceChildren(...best, packed);
      best.forEach((node, place) => {
        if (asked.length) node.open = place === 0;
        copyable(node);
      });
      status.textContent = asked.length
        ? best.length
          ? `The ${best.length} nearest of ${all.answers.length} answers`
          : "Nothing like that is judged here; try a model, a task and a length"
        : "";
    };

    const copyable = (node) => {
      if (!navigator.clipboard || node.querySelector("button")) return;
      node.querySelectorAll("dd > code").forEach((code) => {
        const copy = Object.assign(document.createElement("button"), { type: "button", textContent: "Copy" });
        copy.addEventListener("click", () =>
          navigator.clipboard.writeText(code.textContent).then(() => (copy.textContent = "Copied")),
        );
        code.after(copy);
      });
    };

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
