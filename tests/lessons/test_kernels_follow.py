"""What a function with a kernel makes lies where its input lies: on a machine with a GPU, `cp` is CuPy, and a check's
arrays are on the simulated one."""

import ast

import pytest
from lessons_found import ROOT

FILES = sorted(file for number in ("08", "09", "14") for file in (ROOT / "lessons").rglob(f"{number}_*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_function_makes_no_array_of_its_own_in_cp(file):
    functions = [node for node in ast.parse(file.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)]
    on_the_host = [function for function in functions if not function.decorator_list]
    makers = {f"cp.{name}" for name in ("empty", "zeros", "ones", "empty_like", "zeros_like")}
    found = {ast.unparse(node.func) for each in on_the_host for node in ast.walk(each) if isinstance(node, ast.Call)}
    assert not makers & found
