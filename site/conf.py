"""Sphinx's configuration of the site. `make site` gathers the pages and calls Sphinx."""

import importlib
import inspect
import re
from collections import defaultdict
from pathlib import Path

import unrolled

project = "Unrolled"
author = "the authors of Unrolled"
release = unrolled.__version__
html_title = "Unrolled"
copyright = "the authors of Unrolled, BSD-3-Clause"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "unrolled_grader.authoring.site.glossary",
]
exclude_patterns = ["_templates", "extra", "lessons/*.learner.ipynb"]
templates_path = ["_templates"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
# Levels left out; code with an ellipsis; a word that two classes have.
suppress_warnings = ["myst.header", "misc.highlighting_failure", "ref.python"]

default_role = "py:obj"  # `conv2d` in a docstring is code, and a link where there is such a thing
add_module_names = False
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_inherit_docstrings = False  # `forward` is explained once, by `Layer`
autodoc_preserve_defaults = True
autodoc_type_aliases = {name: name for name in ("Array", "Module", "IntOrPair", "Program")}  # not Any


def by_file(module: str) -> dict[str, list[tuple[str, str]]]:
    """Return the functions and classes that a module exports, by their file or folder: (directive of autodoc, name)."""
    exporting, found = importlib.import_module(module), defaultdict(list)
    for name in exporting.__all__:
        thing = getattr(exporting, name)
        if inspect.isclass(thing) or inspect.isroutine(thing):
            home = ".".join(thing.__module__.split(".")[: module.count(".") + 2])
            found[home].append(("autoclass" if inspect.isclass(thing) else "autofunction", name))
    return dict(found)


MODULES = ["ops", "ops.precision", "nn", "check", "journal", "timing", "parallel", "simgpu"]
autosummary_context = {"by_file": {f"unrolled.{name}": by_file(f"unrolled.{name}") for name in MODULES}}

nb_execution_mode = "off"  # the lessons were executed before, by unrolled_grader.authoring.executed

html_theme = "furo"
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
html_extra_path = ["extra"]
html_static_path = ["_static"]
html_favicon = "_static/icon.svg"
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_domain_indices = False
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False


def in_the_library(app, environment, node, content):
    """Resolve `ops.conv2d` in a docstring as unrolled.ops.conv2d, if there is such a thing."""
    if node.get("refdomain") != "py":
        return None
    target, py = f"unrolled.{node['reftarget']}", environment.get_domain("py")
    return py.resolve_xref(environment, node["refdoc"], app.builder, node["reftype"], target, node, content)


def without_wrapping(app, what, name, thing, options, *signature):
    """Name the aliases of types plainly, in unions, too."""
    return tuple(part and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", part) for part in signature)


def setup(app):
    """Connect what Sphinx calls."""
    app.connect("autodoc-process-signature", without_wrapping)
    app.connect("missing-reference", in_the_library)
