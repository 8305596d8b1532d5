// A box that scrolls sideways is a stop of the Tab key, so that the arrow keys can move it, too. The
// theme sees to code and to its own tables; here are equations and the tables of exhibits.
(() => {
  const BOXES = ".scroll, div.math, mjx-container[display]";
  const update = () => {
    document.querySelectorAll(BOXES).forEach((box) => {
      const scrolls = ["auto", "scroll"].includes(getComputedStyle(box).overflowX);
      if (scrolls && box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    });
  };
  window.addEventListener("load", async () => {
    await window.MathJax?.startup?.promise;
    update();
    window.addEventListener("resize", update);
    document.addEventListener("toggle", update, true); // something was unfolded
  });
})();
