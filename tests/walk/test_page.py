"""How a page is read: its commands, what is typed, and what of an output is shown."""

from page import added, commands, same, shown, typed


def test_a_command_goes_on_after_a_backslash() -> None:
    assert commands("$ a b\nsaid\n$ c \\\n    d\nsaid $ not\n") == ["a b", "c \\\n    d"]


def test_submissions_stand_in_one_order_and_long_paragraphs_lose_their_middle() -> None:
    assert shown("[1/2] b: 1\n[2/2] a: 1\nwhy\n\nx\n\n", 8) == "[1/2] a: 1\n[2/2] b: 1\nwhy\n\nx\n"
    assert shown("1\n2\n3\n4\n5\n\nx", 4) == "1\n2\n…\n5\n\nx\n"
    assert shown("\n", 4) == ""


def test_only_what_differs_from_run_to_run_is_passed_over() -> None:
    assert same("5 of 6 in 4 s, s-abcde23456") == same("5 of 6 in 12 s, s-zzzzz77777")
    assert same("5 of 6 in 4 s") != same("4 of 6 in 4 s")
    assert same("s001 2026-11-21T21:38:46.39+00:00") != same("s002 2026-11-21T21:38:46.39+00:00")


def test_a_typed_table_takes_the_place_of_the_one_that_is_there() -> None:
    there = "# when\n[due]\n\n# how\n[late]\na = 1\nb = 2\n\n[z]\nc = 1\n"
    assert typed(there, "[due]\nk = 3\n\n[late]\na = 5\n\n[new.x]\ny = 1\n") == (
        "# when\n[due]\nk = 3\n\n# how\n[late]\na = 5\n\n[z]\nc = 1\n\n[new.x]\ny = 1\n"
    )


def test_lines_are_added_at_the_end_or_above_the_cell_of_a_line() -> None:
    assert added("a = 1\n", "b = 2\n", None) == "a = 1\n\n\nb = 2\n"
    cells = "# %%\n1\n\n# %% [markdown]\n# Last\n"
    assert added(cells, "# %%\n2\n", "# Last") == "# %%\n1\n\n\n# %%\n2\n\n# %% [markdown]\n# Last\n"
