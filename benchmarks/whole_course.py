"""A course for real: a class in four weeks, on one machine and on a cluster, while parts of both are killed.

    python benchmarks/whole_course.py [--quick] [--json benchmarks/results/whole_course.json] [--students 200]
                                      [--lessons 00 02] [--timed 02] [--only cluster] [--keep FOLDER]

A made-up class (whole_course_class.py) goes through these lessons by the commands of docs/teaching.md. Speed counts in
the lessons of --timed; 06, 09, 13 and 14 keep the points of a GPU. All is graded as if there were none; at the end
one machine grades with what it has. Then every upload, row of scores, page and cell of an export is counted.

"one machine": SIGKILL for the coordinator in the first week, for a judge in the second. "cluster": the same class on
three Dask workers in network namespaces (needs root and `ip`): the first is killed in the first week, the second has
half a core, the third no bubblewrap; the coordinator is killed in the second week, the scheduler in the third. `lost`:
what has no row, or waits for a GPU that is there. `wrong`: right answers without all points, lateness that does not
fit. `unequal`: parts with other points than on one machine, or than without a GPU. It exits with 1 if there are any.
"""

from __future__ import annotations

import csv
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import common
import memory
import whole_course_class
from unrolled_grader.jobs import record
from whole_course_class import LESSONS, Student, fits, late, on_moodle, people

WAYS, WITH_GPU = ("one machine", "cluster"), ("06", "09", "13", "14")
DUE = [datetime(2027, 1, 8 + 7 * week, 23, 59) for week in range(4)]
KILLS = {("one machine", 0): "coordinator", ("one machine", 1): "judge"}
KILLS |= {("cluster", 0): "worker", ("cluster", 1): "coordinator", ("cluster", 2): "scheduler"}
"""What is killed in a week, when a third of its submissions are graded."""
NODES, SLOW, ADDRESS = ("killed", "slow", "unboxed"), "/sys/fs/cgroup/cpu/unrolled-slow", "tcp://10.77.0.1:8786"
NETWORK = f"""
ip link add course type bridge; ip addr add 10.77.0.1/24 dev course; ip link set course up; n=11
for node in {" ".join(NODES)}; do
    ip netns add $node; ip link add course$n type veth peer name eth0 netns $node; ip link set course$n master course up
    ip -n $node addr add 10.77.0.$n/24 dev eth0; ip -n $node link set eth0 up; ip -n $node link set lo up; n=$((n + 1))
done; mkdir -p {SLOW}; echo 50000 > {SLOW}/cpu.cfs_quota_us"""
NO_NETWORK = f"ip link del course; for node in {' '.join(NODES)}; do ip netns del $node; done; rmdir {SLOW}"
INSIDE, EXPORTS = "ip netns exec {} unshare --mount sh -c", ("Canvas", "Moodle", "Brightspace")
Part, Rows = tuple[str, ...], Mapping[Any, Mapping[str, str]]
PEAK, BEGUN, CLUSTER = [0.0], set[int](), dict[str, "subprocess.Popen[str]"]()


def main() -> int:
    parser = common.parser(__doc__)
    parser.add_argument("--students", type=int, default=200)
    parser.add_argument("--lessons", nargs="+", default=list(LESSONS), choices=LESSONS, metavar="00")
    parser.add_argument("--timed", nargs="*", default=["02"], choices=LESSONS, metavar="02")
    parser.add_argument("--only", nargs="+", choices=WAYS, default=WAYS, metavar="WAY")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="work there, and leave everything")
    options = parser.parse_args()
    if options.quick:
        options.students, options.lessons = 6, ["00", "12"]
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    threading.Thread(target=watch_memory, daemon=True).start()
    rows: list[common.Row] = []
    with tempfile.TemporaryDirectory(prefix="course-") as scratch:
        for name in options.only:
            root = (options.keep or Path(scratch)).absolute() / name.replace(" ", "-") / "instructors"
            course = Course(name, root, people(options.students), options.lessons, options.timed)
            hold(course)
            rows += course.rows
    common.finish(options, rows, ["nbgrader", "nbconvert", "distributed"])
    return int(any(row.get(figure) for row in rows for figure in ("lost", "unequal", "wrong")))


@dataclass
class Course:
    """One way through the course: its folder, its class, and what was seen on the way."""

    name: str
    root: Path
    people: Sequence[Student]
    lessons: Sequence[str]
    timed: Sequence[str]
    rows: list[common.Row] = field(default_factory=list)
    uploads: dict[Part, set[bytes]] = field(default_factory=dict)
    excused: dict[str, str] = field(default_factory=dict)  # the lesson that a student has an extension for

    def run(self, stage: str, *command: str, kill: str = "", codes: Sequence[int] = (0,)) -> None:
        """Run a command in the course's folder; add its seconds to the stage's row, and the peak of memory.

        `kill` names what is killed once a third is graded. Raises RuntimeError for an exit code not in `codes`.
        """
        start, lines, done, PEAK[0] = time.perf_counter(), list[str](), 0, 0.0
        process = begun(command, self.root)
        for line in process.stdout or ():
            lines.append(line)
            if found := re.match(r"\[(\d+)/(\d+)\]", line):
                done, count = int(found[1]), int(found[2])
                if kill and 3 * done >= count:
                    os.kill(victim(kill, process.pid), signal.SIGKILL)
                    self.note("kills", f"the {kill}, {' '.join(command[1:6])}", start, judged=done, of=count)
                    kill = ""
        code = process.wait()
        with (self.root.parent / "course.log").open("a", encoding="utf-8") as log:
            log.write(f"$ {' '.join(command)}\n{''.join(lines)}exit code {code}\n\n")
        if code not in codes:
            raise RuntimeError(f"{self.name}, {stage}: exit code {code}\n{''.join(lines[-40:])}")
        self.note("commands", stage, start, peak_mb=PEAK[0], judged=done, runs=1)

    def note(self, section: str, name: str, start: float, **facts: Any) -> None:
        """Add a row with the seconds since `start`, or add to the row of that name; print it."""
        name = f"class of {len(self.people)}, {self.name}, {name}"
        row = {"section": section, "name": name, "seconds": time.perf_counter() - start, **facts}
        print(row, flush=True)
        for known in [one for one in self.rows if one["name"] == name and "runs" in one]:
            self.rows.remove(known)
            row |= {key: known[key] + row[key] for key in ("seconds", "judged", "runs")}
            row["peak_mb"] = max(known["peak_mb"], row["peak_mb"])
        self.rows.append(row)

    def weeks(self) -> list[Sequence[str]]:
        """Return the lessons of each week, of four at most."""
        size = -(-len(self.lessons) // len(DUE))
        return [self.lessons[start : start + size] for start in range(0, len(self.lessons), size)]

    def grade(self, stage: str, *words: str, **how: Any) -> None:
        where = ("--scheduler", ADDRESS) if self.name == "cluster" else ()
        self.run(stage, "unrolled", "grade", *words, *where, **how)

    def table(self, name: str) -> list[dict[str, str]]:
        with (self.root / name).open(newline="", encoding="utf-8-sig") as stream:
            return list(csv.DictReader(stream))

    def scores(self) -> Rows:
        return {(row["student"], row["lesson"], row["check"]): row for row in self.table("grades/scores.csv")}


def hold(course: Course) -> None:
    """Hold the course, and count what came of it."""
    start = time.perf_counter()
    enrol(course)
    with cluster(course) if course.name == "cluster" else nullcontext() as restart:
        for week, lessons in enumerate(course.weeks()):
            hold_week(course, week, lessons, restart)
    if course.name == "one machine":
        complete(course)
    near = "02" if "02" in course.lessons else course.lessons[0]
    course.run(f"unrolled similar {near}", "unrolled", "similar", near)
    for name in EXPORTS:
        exporter = ["--exporter", f"unrolled_grader.export.{name}", "--to", f"{name.lower()}.csv"]
        course.run("export", "nbgrader", "export", *exporter)
    count(course, start)


def enrol(course: Course) -> None:
    """Make the class, its roster, pairs and due times; each way through the course has the same private seed."""
    spring, seed = course.root.parent, course.root.parents[1] / "private_seed"
    without = ",".join(lesson for lesson in LESSONS if lesson not in (*course.timed, *WITH_GPU))
    if begun(["unrolled", "class", "new", str(spring), "--without-speed", without], common.ROOT).wait():
        raise RuntimeError(f"there is no class in {spring}")
    private = course.root / "grader" / "private_seed"
    shutil.copy(*(seed, private) if seed.exists() else (private, seed))
    for name, text in whole_course_class.roster(course.people).items():
        (course.root / name).write_text(text, encoding="utf-8")
    due = [f"{LESSONS[one]} = {at.isoformat()}" for at, week in zip(DUE, course.weeks(), strict=False) for one in week]
    settings = (course.root / "course.toml").read_text(encoding="utf-8").replace("per_day = 0.0", "per_day = 0.1")
    settings = settings.replace("[due]\n", "\n".join(["[due]", 'timezone = "Europe/Berlin"', *due, ""]))
    (course.root / "course.toml").write_text(settings, encoding="utf-8")


def hold_week(course: Course, week: int, lessons: Sequence[str], restart: Any) -> None:
    """Take in a week's lessons, grade, take in what is late, grade again, mark, regrade, extend."""
    kill = KILLS.get((course.name, week), "")
    for download in (0, 1):
        for lesson in lessons:
            collect(course, lesson, download, DUE[week])
        if kill and not download:
            course.grade("grade, to the kill", *lessons, kill=kill, codes=(-9, 1) if kill[0] in "cs" else (0,))
        if kill == "scheduler" and not download:
            restart()
        course.grade("grade", *lessons)
    whole_course_class.mark(course.root)
    course.grade("grade, after marking", *lessons, "--reason", "answers in words")
    again = ("--student", course.people[0].id, "--force", "--reason", "asked for a second look")
    course.grade("regrade", lessons[-1], *again)
    for one, lesson in [pair for pair in late(course.people, lessons) if pair[0].id not in course.excused][:1]:
        with (course.root / "course.toml").open("a", encoding="utf-8") as stream:
            until = (DUE[week] + timedelta(days=7)).isoformat()
            stream.write(f"\n[extensions.{one.id}]\n{LESSONS[lesson]} = {until}\n")
        course.excused[one.id] = lesson
        course.grade("extension", lesson, "--student", one.id, "--reason", "was ill")


def collect(course: Course, lesson: str, download: int, due: datetime) -> None:
    """Download what is there by then, and collect it; of two people of one name on Moodle, from folders by id."""
    uploads, folder = [], course.root.parent / f"{lesson}-{download}"
    for who, found in whole_course_class.handed_in(course.people, lesson, download, due):
        uploads.append(found)
        for student in who:
            course.uploads.setdefault((student.id, LESSONS[lesson]), set()).add(found.data)
        if on_moodle(lesson) and who[0] in course.people[-2:] and not who[1:]:
            (folder / who[0].id).mkdir(parents=True)
            (folder / who[0].id / found.name).write_bytes(found.data)
    folder.with_suffix(".zip").write_bytes(whole_course_class.downloaded(uploads, lesson, download, due))
    files = [f"{folder}.zip", *([str(folder)] if folder.exists() else [])]  # what is theirs in the zip is set aside
    course.run("collect", "unrolled", "collect", *files, "--lesson", lesson, codes=[0, 1][: len(files)])


def complete(course: Course) -> None:
    """Grade what waits for a GPU with what is here; note what still waits, and what changed besides."""
    start, before = time.perf_counter(), course.scores()
    os.environ.pop("CUDA_VISIBLE_DEVICES")
    command = [sys.executable, "-c", "from unrolled import device; print(device.describe()['gpu'] or '')"]
    gpu = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() or None
    course.grade("grade, with a GPU" if gpu else "grade, with no GPU here", "--reason", "a GPU")
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    waits, after = [{part for part in one if one[part]["verdict"] == "deferred"} for one in (before, course.scores())]
    changed = {part for part, row in course.scores().items() if row["points"] != before[part]["points"]}
    unequal = {part for part in changed - waits if part[2] != "late"}  # a share of what is earned
    facts = {"gpu": gpu, "deferred_before": len(waits), "deferred": len(after), "unequal": len(unequal)}
    course.note("counts", "points of a GPU", start, **facts, **({"lost": len(after)} if gpu else {}))


def count(course: Course, start: float) -> None:
    """Count what there should be and what there is, beside the scores of one machine if it was graded, too."""
    due = {(student.id, LESSONS[lesson]): lesson for lesson in course.lessons for student in course.people}
    scores, home = course.scores(), course.root / "grader"
    one = replace(course, root=course.root.parents[1] / "one-machine" / "instructors")
    before = one.scores() if one.root.exists() else {}
    rows: dict[Part, dict[str, Mapping[str, str]]] = {who: {} for who in due}
    for part, row in scores.items():
        rows[part[:2]][part[2]] = row
    asked = {one: {part[2] for part in scores if part[1] == LESSONS[one]} - {"late"} for one in course.lessons}
    lost: list[Part] = [(*who, check) for who in due for check in asked[due[who]] - rows[who].keys()]
    lost += [(*who, "page") for who in due if not (home / "feedback" / who[0] / who[1] / f"{who[1]}.html").is_file()]
    kept = {file.read_bytes() for file in (home / "received").rglob("*") if file.is_file()}
    collected = [row for row in course.table("grades/collected.csv") if not row["problem"]]
    listed = Counter((row["student"], row["lesson"]) for row in collected)
    lost += [(*who, "upload") for who, files in course.uploads.items() if files - kept or listed[who] < len(files)]
    cells = {row["SIS Login ID"]: row for row in course.table("canvas.csv")}
    waits = {part[:2] for part, row in scores.items() if row["verdict"] in record.OPEN and float(row["max_points"])}
    lost += [(*who, "cell") for who in due if bool(cells[who[0]][who[1]]) == (who in waits)]
    lost += [(name,) for name in EXPORTS if len(course.table(f"{name.lower()}.csv")) < len(course.people)]
    wrong: list[Part] = [who for who in due if not fits(course.people, who[0], due[who], rows[who], course.excused)]
    unequal = [part for part in before if part not in scores or before[part]["points"] != scores[part]["points"]]
    facts = {"students": len(course.people), "lessons": len(course.lessons), "score_rows": len(scores)}
    facts |= {"uploads": sum(map(len, course.uploads.values())), "wrong": len(wrong), "unequal": len(unequal)}
    course.note("counts", "everything", start, **facts, lost=len(lost), at_most_lost=0, at_most_unequal=0)
    print("\n".join(map(str, [("lost", *lost), ("wrong", *wrong), ("unequal", *unequal)])))


@contextmanager
def cluster(course: Course) -> Iterator[Any]:
    """Run a scheduler and three workers in network namespaces, as docs/cluster.md has it; give what restarts all."""
    worker = f"exec dask worker {ADDRESS} --nworkers 1 --nthreads 1 --resources TIMING=1 --memory-limit 0"
    before = {"slow": f"echo $$ > {SLOW}/cgroup.procs;", "unboxed": f"mount --bind /dev/null {shutil.which('bwrap')};"}
    commands = {one: [*INSIDE.format(one).split(), f"{before.get(one, '')} {worker}"] for one in NODES}
    commands["scheduler"] = ["dask", "scheduler", "--host", "10.77.0.1", "--no-dashboard"]

    def end() -> None:
        for process in CLUSTER.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def start() -> None:
        end()
        CLUSTER.update((name, begun(command, course.root, quiet=True)) for name, command in commands.items())

    try:
        begun(["sh", "-c", NETWORK], common.ROOT, quiet=True).wait()
        start()
        yield start
    finally:
        end()
        begun(["sh", "-c", NO_NETWORK], common.ROOT, quiet=True).wait()


def victim(name: str, pid: int) -> int:
    """Return the process to be killed: of the command that runs, or of the cluster."""
    above, sign = (CLUSTER[NODES[0]].pid, "spawn_main") if name == "worker" else (pid, "forkserver")
    if name in ("worker", "judge"):  # its nanny, or the coordinator, starts another one
        return [one for one in memory.descendants(above) if sign in memory.read(f"/proc/{one}/cmdline")][-1]
    return CLUSTER[name].pid if name in CLUSTER else pid


def begun(command: Sequence[str], folder: Path, *, quiet: bool = False) -> subprocess.Popen[str]:
    """Begin a command, as after `. .venv/bin/activate` in the folder's own checkout, and where there is no GPU."""
    own = {"PYTHONPATH": os.pathsep.join(str(folder / name) for name in ("lib", "grader")), "LC_ALL": "C.UTF-8"}
    how: Any = {"stdout": subprocess.DEVNULL if quiet else subprocess.PIPE, "stderr": subprocess.STDOUT}
    how |= {"encoding": "utf-8", "start_new_session": quiet}
    process = subprocess.Popen(command, cwd=folder, env=os.environ | own, **how)
    BEGUN.add(process.pid)
    return process


def watch_memory() -> None:
    """Keep the largest memory of all that this process started, in MB."""
    # Workers in boxes have lost their parents: they become children of this process, which sees them off.
    ctypes.CDLL(None).prctl(memory.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    while True:
        PEAK[0] = max(PEAK[0], sum(map(memory.pss_mb, memory.descendants(os.getpid()))))
        for child in {*map(int, memory.read(f"/proc/self/task/{os.getpid()}/children").split())} - BEGUN:
            with suppress(ChildProcessError):
                os.waitpid(child, os.WNOHANG)
        time.sleep(0.3)


if __name__ == "__main__":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    sys.exit(main())
