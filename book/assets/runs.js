// The page of provenance: shows one run above the table of all, when its row is chosen or the address
// ends in #run-<key>. Details come from one script per experiment beside this one (runs/<experiment>.js,
// see lib/relength/report/run_index.py), loaded when first needed: that works from a folder, too.
(() => {
  const NAMES = { selected: "selected by the paper's rule", last: "last", best_iid: "best in distribution" };
  const here = document.currentScript.src;
  const entry = document.getElementById("run-entry");

  const element = (name, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  };
  const loaded = {};
  const details = (experiment) =>
    (loaded[experiment] ??= new Promise((resolve, reject) => {
      const source = new URL(`runs/${experiment}.js`, here).href;
      const script = element("script", { src: source, onerror: reject });
      script.onload = () => resolve(window.relengthRuns[experiment]);
      document.head.append(script);
    }));

  const table = (caption, heads, rows) =>
    element("div", { className: "scroll" },
      element("table", {},
        element("caption", {}, caption),
        element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))),
        element("tbody", {}, ...rows.map(([first, ...rest]) =>
          element("tr", {}, element("th", { scope: "row" }, first), ...rest.map((cell) => element("td", {}, cell)))))));

  const list = (pairs) =>
    element("dl", {}, ...pairs
      .filter(([, value]) => value !== undefined && value !== null && value !== "")
      .flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, String(value))]));

  const command = (words, why) => {
    const copy = element("button", { type: "button" }, "Copy");
    const boxed = words.split(" ").flatMap((word) => [element("span", { className: "pre" }, word), " "]).slice(0, -1);
    copy.onclick = () => navigator.clipboard?.writeText(words).then(() => (copy.textContent = "Copied"));
    return element("div", { className: "command" }, element("p", {}, why),
      element("div", {}, element("code", {}, ...boxed), ...(navigator.clipboard ? [copy] : [])));
  };

  // Two small curves over the epochs: accuracies from 0 to 1, and the loss from 0 to its highest.
  const curve = (points) => {
    const [width, height] = [280, 64];
    const last = points.epoch.at(-1) || 1;
    const line = (values, most, kind) => {
      const place = (value, i) =>
        `${((points.epoch[i] / last) * width).toFixed(1)},${((1 - value / most) * (height - 4) + 2).toFixed(1)}`;
      return `<polyline class="${kind}" points="${values.map(place).join(" ")}"/>`;
    };
    const drawing = (label, lines, words) => {
      const box = element("figure", {});
      box.innerHTML = `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${label}">
        <path class="rule" d="M0 2H${width}M0 ${height - 2}H${width}"/>${lines}</svg>`;
      box.append(element("figcaption", {}, ...words));
      return box;
    };
    const percent = (value) => `${(100 * value).toFixed(1)} %`;
    const highest = Math.max(...points.train_loss);
    const key = (kind, words) => element("span", { className: `key ${kind}` }, words);
    return element("div", { className: "curves" },
      drawing("Accuracy over the epochs, 0 to 100 %",
        line(points.iid_accuracy, 1, "iid") + line(points.dev_accuracy, 1, "dev"),
        ["Accuracy over the epochs: ", key("iid", `in distribution, ${percent(points.iid_accuracy.at(-1))} at the end`),
          " ", key("dev", `development set, ${percent(points.dev_accuracy.at(-1))}`)]),
      drawing("Training loss over the epochs", line(points.train_loss, highest, "loss"),
        [`Training loss, ${highest.toPrecision(3)} at the highest, ${points.train_loss.at(-1).toPrecision(3)} at the end`]));
  };

  const number = (value, share) => (share ? 100 * value : value).toFixed(2);
  const checkpoints = (execution) =>
    Object.entries(execution.checkpoints).map(([name, kept]) => {
      const body = table(`Checkpoint ${NAMES[name] ?? name}, epoch ${kept.epoch}`, ["test", "samples", ...execution.metrics.map(([words]) => words)],
        kept.tests.map(([test, items, ...values]) => [test, String(items), ...values.map((value, i) => number(value, execution.metrics[i][1]))]));
      return name === "selected" ? body
        : element("details", {}, element("summary", {}, `Checkpoint ${NAMES[name] ?? name}`), body);
    });

  const FRESH = {
    fresh: "today's code is known to reproduce the beginning of this run",
    stale: "today's code does not reproduce this run; tables leave it out",
    "replayed earlier": "an earlier version of the code reproduced the beginning of this run, today's was not asked: relength verify does",
    unchecked: "nobody has replayed it with today's code yet: relength verify does",
  };
  const origin = (execution) => {
    const from = execution.provenance, cost = execution.cost ?? {};
    const code = from.code === execution.code_now ? ", which is today's" : `; today's is ${execution.code_now}`;
    const seconds = (value) => value && `${Math.round(value).toLocaleString("en")} s`;
    return list([
      ["execution", execution.run_id], ["made", from.created?.replace("T", " ").replace("Z", " UTC")],
      ["device", `${from.device_name} (${from.device}${from.threads ? `, ${from.threads} threads` : ""})`],
      ["PyTorch, Python", [from.torch, from.python].filter(Boolean).join(", ")], ["relength", from.relength],
      ["commit", from.commit && from.commit + (from.dirty ? ", with uncommitted changes" : "")],
      ["note", execution.note],
      ["training code", from.code + code], ["freshness", FRESH[execution.freshness] ?? execution.freshness],
      ["margins", from.margins?.slice(0, 12)], ["data", from.data?.source],
      ["parameters", execution.parameters?.toLocaleString("en")],
      ["trained", cost.steps && `${execution.epochs} epochs, ${cost.steps.toLocaleString("en")} steps, ${seconds(cost.training_seconds)}`],
      ["tested", seconds(cost.evaluation_seconds)],
      ["side by side with", cost.stacked > 1 && `${cost.stacked - 1} other runs in one program`],
    ].map(([name, value]) => [name, value || undefined]));
  };

  const open = (title, ...parts) => {
    const close = element("button", { type: "button", className: "close" }, "Close");
    close.onclick = () => {
      entry.hidden = true;
      history.replaceState(null, "", location.pathname + location.search);
    };
    entry.replaceChildren(element("div", { className: "head" }, element("h2", {}, title), close), ...parts);
    entry.hidden = false;
    entry.scrollIntoView({ block: "start" });
  };

  const show = async (key) => {
    const row = document.getElementById(`run-${key}`);
    if (!row) {
      open(`No run has the key ${key}`,
        element("p", {}, "The table below has every run that is recorded. Its filter finds a key by some of its digits."));
      return;
    }
    const run = (await details(row.dataset.runs))[key];
    const [, model, arm, task, scale, seed] = [...row.cells].map((cell) => cell.textContent);
    open(`${model} (${arm}) on ${task}, seed ${seed}, ${scale}`,
      element("p", {}, "Key ", element("code", {}, key), ` in ${row.dataset.runs}.`),
      ...run.executions.flatMap((execution, i) => [
        ...(run.executions.length > 1 ? [element("h3", {}, `Execution ${i + 1} of ${run.executions.length}`)] : []),
        ...(execution.status === "ok" ? [...checkpoints(execution), curve(execution.curve)]
          : [element("p", {}, `It failed: ${execution.error}`)]),
        origin(execution),
      ]),
      command(run.commands.compare, "Train it again, from beginning to end, and compare:"),
      ...(run.commands.record ? [command(run.commands.record, "Train it again, and record that beside it:")] : []),
      element("details", {}, element("summary", {}, "The whole spec"),
        element("pre", {}, JSON.stringify(run.spec, null, 1))));
  };

  const follow = () => {
    const found = location.hash.match(/^#run-(.+)$/);
    if (found && entry && location.hash !== `#${entry.id}`) show(found[1]);
  };
  window.addEventListener("hashchange", follow);
  // A click on the run that is shown already changes no address.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("table.runs a");
    if (link?.hash === location.hash) follow();
  });
  follow();
})();
