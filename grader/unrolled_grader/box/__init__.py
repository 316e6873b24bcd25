"""The box that student code runs in, and the judge's side of it."""
