// Buttons of the head of a page that were pressed by the keyboard keep the focus, for a second press; and on a
// phone the contents of a page close when one of them is chosen.
document.addEventListener("DOMContentLoaded", () => {
  const drop = HTMLElement.prototype.blur; // the theme's, after every press
  for (const button of document.querySelectorAll(".bd-header-article button"))
    button.blur = () => button.matches(":focus-visible") || drop.call(button);
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("dialog .page-toc a"), dialog = link?.closest("dialog");
    if (!dialog) return;
    const chosen = document.querySelector(link.hash);
    // The theme then gives the focus back to the button, which scrolls the page elsewhere.
    dialog.addEventListener("close", () => chosen.scrollIntoView(), { once: true });
    dialog.close();
  });
});
