// What can be scrolled sideways can be reached by keyboard.
addEventListener("load", () => {
  for (const box of document.querySelectorAll("pre, .table-wrapper, .picture, .finding")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
});
