"""`unrolled prove`: what it calls refused, equivalent and a hole, and what it keeps in its record."""

import json
from pathlib import Path

import nbformat
import numpy as np
import pytest

from unrolled import checks
from unrolled.checks.compare import Mismatch
from unrolled.checks.spec import Spec, case, random_case
from unrolled.cli import checkout
from unrolled_grader.authoring import one_cell, proofs, prove, variants

SOURCE = """
def total(rows, weight):
    found = 0 * weight
    for row in rows:
        found = found + row * weight
    return found
"""


def total(rows, weight):
    return sum(rows, 0 * weight) * weight if rows else 1 / weight


def any_rows(rng):
    rows = [rng.normal(size=40) for _ in range(rng.integers(1, 4))]
    return {"rows": rows, "weight": rng.normal(size=40)}


NARROW = [case("one row", rows=[np.arange(3.0)], weight=np.array([2.0, 3.0, 5.0]))]


def proof(cases, domain, *, others=(), share=slice(None), seeds=3, **options):
    cell = nbformat.v4.new_code_cell(SOURCE, metadata={"nbgrader": {"grade_id": "total"}})
    spec = Spec(total, cases, points=1, hints=("", "", ""), domain=domain, **options)
    return proofs.prove("total", spec, [cell], others=others, draws=50, share=share, seeds=seeds)


def test_a_check_that_covers_its_domain_has_no_holes():
    found = proof(NARROW, random_case("any rows", any_rows))
    assert not found.holes
    assert found.refused > 20
    assert found.equivalent  # the sum in another order
    assert found.named > 0.8 * found.refused


def test_a_mutant_that_only_some_inputs_tell_apart_is_a_hole(monkeypatch):
    monkeypatch.setattr(Spec, "drawn", lambda spec, seed, shown: [])  # as if the check drew nothing of its domain
    found = proof(NARROW, random_case("any rows", any_rows))
    holes = "\n".join(found.holes)
    assert "list(rows)[:1]" in holes
    assert "wrong where len(rows) == 2" in holes
    assert "the call: rows=" in holes


def lax(got, expected, inputs):
    return None if np.shape(got) == np.shape(expected) else Mismatch.of("another shape")


def test_a_difference_that_the_check_accepts_is_a_hole():
    holes = "\n".join(proof(NARROW, random_case("any rows", any_rows), compare=lax).holes)
    assert "found = found - row * weight" in holes
    assert "accepted, and not the same: " in holes


def test_where_several_results_are_right_the_check_decides():
    either = random_case("any rows", any_rows)
    found = proof(NARROW, either, compare=lax, others=[SOURCE.replace("return found", "return -found")])
    assert found.own


def test_other_right_answers_have_mutants_as_well():
    other = "def total(rows, weight):\n    return np.sum([*rows, 0 * weight], axis=0) * weight"
    alone = proof(NARROW, random_case("any rows", any_rows))
    found = proof(NARROW, random_case("any rows", any_rows), others=[f"import numpy as np\n{other}"])
    assert found.mutants > alone.mutants
    assert not found.holes


def test_shares_of_an_exercises_mutants_are_its_proof_together():
    given = NARROW, random_case("any rows", any_rows)
    halves = [proof(*given, share=slice(first, None, 2)).to_dict() for first in (0, 1)]
    whole = proofs.joined([proof(*given, share=slice(first, None, 2)) for first in (0, 1)]).to_dict()
    assert whole["mutants"] == sum(half["mutants"] for half in halves) == proof(*given).mutants
    assert whole["seeds"] == 3


def test_what_fixed_inputs_refuse_is_not_tried_at_other_seeds(monkeypatch):
    tried = []
    run = checks.run
    monkeypatch.setattr(checks, "run", lambda *args, **options: tried.append(options["seed"]) or run(*args, **options))
    found = proof(NARROW, random_case("any rows", any_rows), seeds=6)
    assert found.seeds == 6
    later = [seed for seed in tried if 0 < seed < 6]
    assert len(later) < 2 * found.refused  # of five times as many


def test_what_a_function_binds_itself_is_not_looked_for_above():
    above = ["with open(file) as text:\n    events = [text]", "events = [text]"]
    assert one_cell.needed(above, "def f(x):\n    events = x\n    return events") == []


def test_an_answer_that_does_not_pass_proves_nothing():
    with pytest.raises(ValueError, match="a right answer does not pass at seed 0"):
        proof([case("two", rows=[], weight=np.ones(2, np.float32))], None)


def test_what_the_record_does_not_know_as_it_is_now_is_proved_again(tmp_path, monkeypatch):
    monkeypatch.setattr(prove, "content", lambda root, name: "now")
    (tmp_path / prove.RECORD).parent.mkdir(parents=True)
    assert prove.changed(tmp_path, ["ink"]) == ["ink"]
    rows = [{"name": "ink", "content": "now"}, {"name": "merge", "content": "before"}]
    (tmp_path / prove.RECORD).write_text(json.dumps({"rows": rows}))
    assert prove.changed(tmp_path, ["ink", "merge", "im2col"]) == ["merge", "im2col"]


def test_the_file_of_a_spec_counts_where_none_of_its_functions_stands_there(monkeypatch):
    seen, read = [], Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda file: seen.append(file) or read(file))
    prove.content(checkout.find(), "adam_step")
    assert "l05_train_a_cnn/exercises.py" in {"/".join(file.parts[-2:]) for file in seen}


def test_the_record_has_every_exercise_and_no_hole():
    root = checkout.find()
    rows = {row["name"]: row for row in json.loads((root / prove.RECORD).read_text())["rows"]}
    assert {name for name in variants.checks(root) if checks.all_specs()[name].limit is None} <= set(rows)
    assert [name for name, row in rows.items() if row["holes"]] == []
