# Two commands from nothing: `make lab` and `make demo`. Every target sets up .venv itself (.ci/venv).
#
# make PYTHON=python3.12 ...    another interpreter for .venv
# make lab LESSON=02            open one lesson; LAB_ARGS='--no-open -- --port 9999' reaches `unrolled lab` and JupyterLab
# make wheelhouse WHEELHOUSE_ARGS='--python 3.12 --data mnist'
# make bench FULL=1             the long form, an hour or more; BENCH_DIR says where the records go
# make bench ONLY='cpu ladder'  these benchmarks alone
#
# On Linux, PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu spares `make test` several GB of CUDA packages.

PYTHON ?= python3
LESSON ?=
LAB_ARGS ?=
WHEELHOUSE_ARGS ?=
BENCH_DIR ?= artifacts/benchmarks
export PYTHON
export MYPY_NUM_WORKERS ?= 2
# Tests and gradings start many processes: each would compile our modules again.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin

.PHONY: help lab demo build build-check site test test-all proofs test-colab bench clean

help:
	@echo 'make lab          copy the lessons to work/ if they are not there, and open JupyterLab'
	@echo 'make demo         make a sample class of seven, grade lessons 01 and 02, print the scores'
	@echo 'make build        make solutions/ and notebooks/ from lessons/'
	@echo 'make build-check  fail if they are not what lessons/ makes of them'
	@echo 'make site         a web site of all lessons, executed, in build/site'
	@echo 'make wheel        the course'\''s wheel in dist/, with its sha256'
	@echo 'make wheelhouse   everything for a classroom without network, in dist/wheelhouse/'
	@echo 'make test         lint, types, build-check, the library, the judge and every lesson: what a change is tried with'
	@echo 'make test-all     what make test leaves out: all proofs, a class from end to end, the browser, the site, Colab'\''s versions'
	@echo 'make proofs       every check against wrong answers made by machine, for the record: 10 minutes'
	@echo 'make test-colab   the library and the notebooks with the versions that Colab has'
	@echo 'make bench        measures here what the course claims of itself, beside its records'
	@echo 'make clean        remove environments, caches and build products; never anyone'\''s work'

.venv/.lab .venv/.grading .venv/.site .venv/.dev: pyproject.toml
	@.ci/venv $(patsubst .%,%,$(notdir $@))

lab: .venv/.lab
	@$(BIN)/unrolled lab $(LESSON) $(LAB_ARGS)

demo: .venv/.grading
	@$(BIN)/unrolled demo

build: .venv/.grading
	@$(BIN)/unrolled build

build-check: .venv/.grading
	@$(BIN)/unrolled build --check

site: .venv/.site
	@$(BIN)/unrolled site

.PHONY: wheel wheelhouse
wheel: .venv/.grading
	@$(BIN)/unrolled wheel

wheelhouse: .venv/.grading
	@$(BIN)/unrolled wheelhouse $(WHEELHOUSE_ARGS)

# What `make test` runs, in this order: what takes long starts first, so that no process ends long before the others.
TESTS := tests/lessons tests/grader tests/lib tests/house tests/gpu
# What `make test-all` runs: whoever changes a function or a lesson need not wait for it.
WHOLE := tests/walk tests/search tests/browser tests/site
# Four processes on two cores, since many tests wait for a process or a page.
SIDE_BY_SIDE := $(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder --durations 10 -m "not timed"

# What measures speeds has the machine to itself.
test: .venv/.dev
	@line="$$(.ci/lacks dev)"; [ -z "$$line" ] || \
		echo "unrolled: tests that need what is missing here will fail or be skipped. On Debian and Ubuntu: $$line" >&2
	@.ci/stage lint $(BIN)/ruff check .
	@.ci/stage format $(BIN)/ruff format --check --quiet .
	@.ci/stage types $(BIN)/mypy
	@.ci/stage build-check $(BIN)/unrolled build --check
	@.ci/stage 'proofs of what changed' $(BIN)/unrolled prove --changed --seeds 1 --draws 100
	@.ci/stage 'tests side by side' $(SIDE_BY_SIDE) $(TESTS)
	@.ci/stage 'tests that measure' $(BIN)/python -m pytest --durations 10 -m timed \
		tests/lessons/test_four_facts.py tests/grader/exploits

# Exit code 3 of .ci/colab: no Python here is old enough for Colab's versions; it has said so.
test-all: .venv/.dev
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit; done; \
		$(BIN)/playwright install chromium
	@.ci/stage 'proofs of all' $(BIN)/unrolled prove --all --seeds 1 --draws 50
	@.ci/stage 'the course as a whole' $(SIDE_BY_SIDE) $(WHOLE)
	@.ci/stage "Colab's versions" .ci/colab || [ $$? = 3 ]

proofs: .venv/.dev
	@$(BIN)/python benchmarks/proofs.py --json benchmarks/results/proofs.json

test-colab:
	@.ci/colab

bench: .venv/.dev
	@$(BIN)/python benchmarks/everything.py $(if $(FULL),,--quick) $(if $(ONLY),--only $(ONLY)) \
		--records $(BENCH_DIR) --json $(BENCH_DIR)/everything.json

# The environments go too; the next target sets them up again from pip's cache. What people made stays where it is:
# work/, grades/, and in grader/ the submissions, the autograded copies, the feedback and the gradebook.
clean:
	rm -rf .venv .venv-colab build dist *.egg-info artifacts .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find .ci benchmarks grader/unrolled_grader grader/sample_class lessons lib notebooks solutions tests \
		\( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} + 2>/dev/null || true
