"""Sphinx's configuration of the site. `make site` gathers the pages and calls Sphinx."""

import unrolled

project = "Unrolled"
author = "the authors of Unrolled"
release = unrolled.__version__
html_title = "Unrolled"
copyright = "the authors of Unrolled, BSD-3-Clause"

extensions = ["myst_nb", "unrolled_grader.authoring.site.glossary"]
exclude_patterns = ["_templates", "extra", "lessons/*.learner.ipynb"]
templates_path = ["_templates"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header", "misc.highlighting_failure"]  # levels left out; code with an ellipsis

nb_execution_mode = "off"  # the lessons were executed before, by unrolled_grader.authoring.executed

html_theme = "furo"
html_extra_path = ["extra"]
html_static_path = ["_static"]
html_favicon = "_static/icon.svg"
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
