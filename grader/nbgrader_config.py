"""What every nbgrader command and formgrader read, through the one line in the repository's root.

`c` is the configuration that traitlets hands to this file.
"""

import os
import sys
from pathlib import Path

root = Path(__file__).absolute().parents[1]

# nbgrader calls `alembic` by name; it lies beside this interpreter, whether or not the environment is activated.
scripts = str(Path(sys.executable).parent)
if scripts not in os.environ.get("PATH", "").split(os.pathsep):
    os.environ["PATH"] = os.pathsep.join([scripts, os.environ.get("PATH", "")])

c = get_config()  # noqa: F821

c.CourseDirectory.course_id = "unrolled"
c.CourseDirectory.root = str(root)
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "notebooks"
c.CourseDirectory.submitted_directory = "grader/submitted"
c.CourseDirectory.autograded_directory = "grader/autograded"
c.CourseDirectory.feedback_directory = "grader/feedback"
c.CourseDirectory.db_url = f"sqlite:///{root / 'grader' / 'gradebook.db'}"

c.ClearSolutions.code_stub = {"python": "# your code here\nraise NotImplementedError"}
c.ClearSolutions.text_stub = "Your answer here."

# How a submission is opened: what cannot be graded is recorded with the reason; only notebook and time stamp are taken.
c.Autograde.exporter_class = "unrolled_grader.plugin.Door"
# The judge repairs what was handed in, and gives it back as it ran. It takes the place of nbgrader's Execute and
# SaveAutoGrades, too, whose rule (no error: full marks) is not ours.
c.Autograde.sanitize_preprocessors = []
c.Autograde.autograde_preprocessors = [
    "unrolled_grader.plugin.Judge",
    "nbgrader.preprocessors.IgnorePattern",
    "nbconvert.preprocessors.ClearMetadataPreprocessor",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
    "unrolled_grader.plugin.Scores",
]
# What lateness costs: [due], [extensions] and [late] in course.toml.
c.AssignLatePenalties.plugin_class = "unrolled_grader.classroom.late.LateSubmissionPlugin"
c.Autograde.pre_convert_hook = "unrolled_grader.plugin.know_lesson"
# The feedback page runs no script, loads nothing, and frames what the judge found.
c.GenerateFeedback.exporter_class = "unrolled_grader.results.feedback.Feedback"
# A person may have given points since the last grading, of which lateness takes its part.
c.GenerateFeedback.preprocessors = ["nbgrader.preprocessors.AssignLatePenalties", "nbgrader.preprocessors.GetGrades"]
# formgrader shows submissions in the instructor's browser, beside Jupyter's token: nothing in them may act there.
c.HTMLExporter.sanitize_html = True
c.HTMLExporter.filters = {
    "markdown2html": "unrolled_grader.results.inert.markdown_in_page",
    "clean_html": "unrolled_grader.results.inert.clean",
}
# Model answer and rubric beside each answer in words.
c.HTMLExporter.preprocessors = ["unrolled_grader.results.marking.Rubric"]
c.Judge.grades_directory = "grades"
