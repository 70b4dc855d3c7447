# make repro   sets up, then runs the whole pipeline (TARGETS=report: of some stages alone; JOBS=1: one stage at a time)
# make compare the same with all methods beside PPPFL, which params.yaml then lists
# make plan    tells what the next `dvc repro` would release, and what that costs each client; it spends and writes nothing
# make recover mends what a crash left torn; make repro does it first
# make test    sets up, then runs the tests; make test-engine those that start a server and clients on loopback, make
#              test-slow those that CI has no time for, make test-crash two hundred faults (FAULTS=40 SEED=7: fewer, by seed)
SHELL  := /bin/bash
# learn2learn is compiled at set-up, so the interpreter needs its headers (Debian: python3-dev, python3-venv).
USABLE  = import ensurepip, os, sys, sysconfig; sys.exit(sys.version_info[:2] not in [(3, 11), (3, 12)] or not os.path.exists(sysconfig.get_path('include') + '/Python.h'))
PYTHON ?= $(shell for p in python3 python3.12 python3.11; do $$p -c "$(USABLE)" 2>/dev/null && { echo $$p; break; }; done)
export PATH := $(CURDIR)/.venv/bin:$(PATH)

COMPILE = uv pip compile --universal --generate-hashes --quiet
# no package is built with anything but what has its hash in that file
BUILT = --build-constraints requirements-build.lock --require-build-hashes --preview-features build-dependency-hashes

REPRO = python -m pipelines.reproduction $(if $(JOBS),--jobs $(JOBS))
EXPERIMENTS = table2 table3 table4 table5 figure2 figure4 roads newcomers

.PHONY: setup readers repro compare plan recover test test-slow test-crash test-engine lint guard push audit mutants $(EXPERIMENTS) figures lock clean
setup: .venv/installed
readers: .venv/readers/installed
repro: setup ; @$(REPRO) $(TARGETS)
# the lists of methods in params.yaml become all that there are; `git diff params.yaml` shows it, `git restore` takes it back
compare: setup ; @python -m pipelines.config all-methods && $(REPRO)
plan: setup ; @python -m pipelines.plan
recover: setup ; python -m pipelines.recover
test:  readers ; python -m pytest -q -n auto --dist loadgroup tests
test-slow: setup ; python -m pytest -q -m "slow and not engine" -n auto --dist loadgroup tests
# a full disk is a small file system of its own, which takes the right to mount: of root in a namespace of its own
ALONE = $(shell unshare -rm true 2>/dev/null && echo unshare -rm)
test-crash: setup ; $(ALONE) python -m pytest -q -s -m crash -o faulthandler_timeout=0 tests/crash
test-engine: setup ; python -m pytest -q -m engine -n 3 --dist loadgroup -o faulthandler_timeout=3600 tests/pipelines/federation/network/flare tests/pipelines/joint tests/benchmarks/test_engine_round.py tests/benchmarks/test_secure_sum_network.py $(ARGS)
lint:  setup ; ruff check . && ruff format --check .
guard: setup ; python -m pipelines.guard
push:  setup ; python -m pipelines.guard && dvc push
# into reports/ through the report stage, which owns that folder; beside it where nothing has run yet
audit: setup ; OMP_NUM_THREADS=1 python -m audits --long --out .scratch/audit && \
  { dvc repro --force --single-item report || { mkdir -p reports && cp .scratch/audit/audit.* reports/; }; }
mutants: setup ; PYTHONPATH=tests python -m mutants
# the paper's tables and figures (Fig. 3 is table5's picture); hours to days: make table2 ARGS="--datasets mnist --seeds 0"
$(EXPERIMENTS): setup ; python -m pipelines.recover && python -m experiments $@ $(ARGS)
# what stands in docs/results.md and in README's table, from benchmarks/results
figures: setup ; python -m benchmarks.crossing && python -m benchmarks.figures
lock:  setup
	$(COMPILE) --group setup -o requirements-setup.lock
	$(COMPILE) --group build -o requirements-build.lock
	$(COMPILE) pyproject.toml --all-extras $(BUILT) -o requirements.lock
	$(COMPILE) --group readers --constraints requirements.lock $(BUILT) -o requirements-readers.lock
clean: ; rm -rf .venv .pytest_cache .ruff_cache .scratch

INSTALL = .venv/bin/uv pip install --system-certs --compile-bytecode --no-deps --require-hashes $(BUILT)
# The venv is complete when its stamp is newer than the locks; a broken install leaves no stamp. uv trusts its own list of
# authorities unless told otherwise, and fails behind an organisation's, which pip and git find in the system's.
.venv/installed: requirements.lock requirements-setup.lock requirements-build.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or 3.12 with venv and headers was found (Debian: python3-venv, python3-dev). Name one: make setup PYTHON=/path/to/python3.12"; exit 1; }
	"$(PYTHON)" -m venv .venv
	.venv/bin/pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements-setup.lock
	$(INSTALL) --python .venv/bin/python -r requirements.lock
	touch $@

# the tools that tests read exports with, apart from all else (pyproject.toml says why)
.venv/readers/installed: .venv/installed requirements-readers.lock
	.venv/bin/python -m venv --without-pip .venv/readers
	$(INSTALL) --python .venv/readers/bin/python -r requirements-readers.lock
	touch $@
