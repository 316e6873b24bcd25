"""The gradebook is as nbgrader makes it, and opened as nbgrader opens it."""

import os
import sqlite3
import sys
from pathlib import Path

import nbgrader.api
import pytest
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from unrolled_grader.classroom import gradebook

ALEMBICS_OWN = "alembic_version"
"""The one table that nbgrader writes out by hand, without the key that Alembic gives it."""


def directory(folder: Path) -> CourseDirectory:
    config = Config()
    config.CourseDirectory.db_url = f"sqlite:///{folder / 'gradebook.db'}"
    config.CourseDirectory.course_id = "course"
    return CourseDirectory(config=config)


def tables(file: Path) -> dict[str, str]:
    """How each table and each index was made, by its name."""
    with sqlite3.connect(file) as connection:
        made = dict(connection.execute("SELECT name, sql FROM sqlite_master"))
    return {name: sql for name, sql in made.items() if ALEMBICS_OWN not in name}


def version(file: Path) -> list[tuple[str]]:
    with sqlite3.connect(file) as connection:
        return connection.execute(f"SELECT version_num FROM {ALEMBICS_OWN}").fetchall()


def test_a_new_gradebook_is_the_one_that_nbgrader_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    theirs = tmp_path / "theirs.db"
    Gradebook(f"sqlite:///{theirs}", "course").close()
    with gradebook.opened(directory(tmp_path)) as ours:
        assert [course.id for course in ours.db.query(nbgrader.api.Course)] == ["course"]
    assert tables(tmp_path / "gradebook.db") == tables(theirs)
    assert version(tmp_path / "gradebook.db") == version(theirs) != []


def test_one_engine_serves_the_block_and_no_longer(tmp_path: Path) -> None:
    before = nbgrader.api.create_engine
    with gradebook.one_engine():
        with gradebook.opened(directory(tmp_path)) as outer, gradebook.opened(directory(tmp_path)) as inner:
            inner.add_student("ann")
            assert inner.engine is outer.engine
        with gradebook.opened(directory(tmp_path)) as again:
            assert [student.id for student in again.students] == ["ann"]
    assert nbgrader.api.create_engine is before
    with gradebook.opened(directory(tmp_path)) as other:
        assert other.engine is not again.engine
