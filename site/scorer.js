// A heading ("page > heading") comes before its page, lessons before other pages, what is not for learners last.
var Scorer = {
  score: ([page, title, anchor, descr, score]) =>
    score + (title.includes(" > ") ? 20 : 0) + ({ lessons: 3, api: 2, notes: -1, docs: -2 }[page.split("/")[0]] ?? 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
