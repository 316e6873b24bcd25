"""A course while it runs: lateness, marks by a person, regrades, pseudonyms, and forgetting a student."""
