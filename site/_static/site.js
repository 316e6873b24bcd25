// What can be scrolled sideways can be reached by keyboard.
addEventListener("load", () => {
  for (const box of document.querySelectorAll("pre, .table-wrapper, .picture, .finding")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
});

// Two regions of one kind need names.
for (const [region, name] of [[".sidebar-drawer", "All pages"], [".toc-drawer", "On this page"]]) {
  document.querySelector(region)?.setAttribute("aria-label", name);
}

// Japanese terms are to be read, and drawn, as Japanese.
for (const term of document.querySelectorAll("dl.glossary dt")) {
  if (/[\u3040-\u30ff\u4e00-\u9fff]/.test(term.textContent)) term.lang = "ja";
}
