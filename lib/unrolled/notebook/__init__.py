"""Notebooks: reading their cells, running them, handing them in, and moving answers to a newer release."""
