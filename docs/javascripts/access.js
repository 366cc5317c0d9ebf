// What the theme leaves out for keyboards and screen readers: the search has a name, and what scrolls can be reached.
addEventListener("load", () => setTimeout(() => {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  for (const node of document.querySelectorAll("pre > code, .md-typeset__scrollwrap")) {
    if (node.scrollWidth > node.clientWidth) node.tabIndex = 0;
  }
}));
