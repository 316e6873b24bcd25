load_subconfig(__file__.replace("nbgrader_config.py", "grader/nbgrader_config.py"))  # noqa: F821  both names are nbgrader's
