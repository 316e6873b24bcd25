// A heading comes before its page, lessons come first of pages, and what is not for learners last. Else as Sphinx has it.
var Scorer = {
  score: ([page, title, anchor, descr, score, file, kind]) =>
    score + (kind === "title" ? 20 : 0) + ({ lessons: 3, api: 2, notes: -1, docs: -2 }[page.split("/")[0]] ?? 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
