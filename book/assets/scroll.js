// A table that is wider than the text takes as much of the margin at its right as it needs and there is;
// the list of contents there makes room while such a table is in sight. What is wider still scrolls in
// its box, and a box that scrolls sideways is a stop of the Tab key, so that the arrow keys can move it,
// too. The theme sees to code; here are tables and equations.
(() => {
  const BOXES = ".scroll, div.math, mjx-container[display], .answer code";
  const TABLES = ".bd-article .scroll:not(.sd-card:not(.ledger-numbers) *)";
  const DESK = 992; // pixels from which the theme has margins
  const GAP = 24; // pixels that are left free at the right edge

  const inSight = new Set();
  const observer = new IntersectionObserver((entries) => {
    entries.forEach(({ target, isIntersecting }) => (isIntersecting ? inSight.add(target) : inSight.delete(target)));
    const covered = [...inSight].some((box) => box.classList.contains("wide"));
    document.querySelector(".bd-sidebar-secondary")?.classList.toggle("hide", covered);
  });
  // What is folded has no size yet, and unfolding it comes back here. All sizes are read at once, between
  // two rounds of changes: to read one after a change lays out the whole page again.
  const unfolded = (boxes) => [...document.querySelectorAll(boxes)].filter((box) => !box.closest("details:not([open])"));
  const widen = (boxes, edge) => {
    boxes.forEach((box) => {
      box.classList.remove("wide");
      box.style.width = "";
    });
    if (window.innerWidth < DESK) return;
    const wanted = boxes.map((box) => {
      const room = edge - GAP - box.getBoundingClientRect().left;
      return box.scrollWidth > box.clientWidth + 1 && room > box.clientWidth && Math.min(box.scrollWidth, room);
    });
    boxes.forEach((box, i) => {
      if (!wanted[i]) return;
      box.style.width = `${wanted[i]}px`;
      box.classList.add("wide");
      observer.observe(box);
    });
  };
  const update = () => {
    const edge = document.querySelector(".bd-main")?.getBoundingClientRect().right;
    if (edge) widen(unfolded(TABLES), edge);
    const boxes = unfolded(BOXES);
    const scroll = boxes.map(
      (box) => ["auto", "scroll"].includes(getComputedStyle(box).overflowX) && box.scrollWidth > box.clientWidth,
    );
    boxes.forEach((box, i) => (scroll[i] ? (box.tabIndex = 0) : box.removeAttribute("tabindex")));
  };
  let waiting; // a thousand things that unfold at once are measured once
  const soon = () => {
    waiting ??= requestAnimationFrame(() => {
      waiting = undefined;
      update();
    });
  };
  window.addEventListener("load", async () => {
    await window.MathJax?.startup?.promise;
    update();
    const main = document.querySelector(".bd-main");
    if (main) new ResizeObserver(soon).observe(main); // the window, or the list of pages at its side
    document.addEventListener("toggle", soon, true); // something was unfolded
  });
})();
