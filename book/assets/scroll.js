// A table that is wider than the text takes as much of the margin at its right as it needs and there is;
// the list of contents there makes room while such a table is in sight. What is wider still scrolls in
// its box, and a box that scrolls sideways is a stop of the Tab key, so that the arrow keys can move it,
// too. The theme sees to code and to its own tables; here are equations and the tables of exhibits.
(() => {
  const BOXES = ".scroll, div.math, mjx-container[display], .answer code";
  const TABLES = ".bd-article :is(.scroll, .pst-scrollable-table-container):not(.sd-card:not(.ledger-numbers) *)";
  const DESK = 992; // pixels from which the theme has margins
  const GAP = 24; // pixels that are left free at the right edge

  const inSight = new Set();
  const observer = new IntersectionObserver((entries) => {
    entries.forEach(({ target, isIntersecting }) => (isIntersecting ? inSight.add(target) : inSight.delete(target)));
    const covered = [...inSight].some((box) => box.classList.contains("wide"));
    document.querySelector(".bd-sidebar-secondary")?.classList.toggle("hide", covered);
  });
  const widen = (box, edge) => {
    box.classList.remove("wide");
    box.style.width = "";
    const room = edge - GAP - box.getBoundingClientRect().left;
    if (window.innerWidth < DESK || box.scrollWidth <= box.clientWidth + 1 || room <= box.clientWidth) return;
    box.style.width = `${Math.min(box.scrollWidth, room)}px`;
    box.classList.add("wide");
    observer.observe(box);
  };
  const update = () => {
    const edge = document.querySelector(".bd-main")?.getBoundingClientRect().right;
    if (edge) document.querySelectorAll(TABLES).forEach((box) => widen(box, edge));
    document.querySelectorAll(BOXES).forEach((box) => {
      const scrolls = ["auto", "scroll"].includes(getComputedStyle(box).overflowX);
      if (scrolls && box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    });
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
