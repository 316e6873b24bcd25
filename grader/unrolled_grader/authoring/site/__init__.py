"""The course as a web site: every lesson executed, to be read without installing anything."""
