# For a fresh machine: `make demo` (no key needed), `make test` (all tests), `make check` (everything that CI checks).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Two for a core: more than half of a test's time is spent waiting for processes, disks and pauses.
WORKERS := $(shell expr 2 '*' $$(getconf _NPROCESSORS_ONLN))
NPM_CI := PATH="$$PATH:$(CURDIR)/$(BIN)" npm ci --loglevel=error --no-audit --no-fund --fetch-timeout=60000 --fetch-retries=4
# Of packages for other systems, which a registry may lack, `ci` would want entries in the lock file.
NPM_INSTALL := $(subst npm ci,npm install --no-save,$(NPM_CI))
# Thousands of processes start in the tests: what is compiled once is kept, whatever the shell says.
export PYTHONDONTWRITEBYTECODE :=
IN_PARALLEL := --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: demo check test coverage bench soak clients docs bundle release-check site clean

demo: $(VENV)/installed
	$(BIN)/massgen demo
	@echo 'To have both commands on PATH: uv tool install .   or   pipx install .'

# TESTS="tests/cli -k help" runs some of the tests.
check: prepared
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(MAKE) --no-print-directory --jobs=2 types test
	@$(PYTHON) tests/needs.py end
	@echo "make check is done. Where things are: CONTRIBUTING.md. Go on with $(BIN)/massgen doctor"

.PHONY: prepared needs types
prepared:
	@$(MAKE) --no-print-directory --jobs=2 needs $(VENV)/developed node_modules/installed

# Programs that no package of Python brings. What is missing is named, and its tests are left out; in CI that is an error.
needs:
	@$(PYTHON) tests/needs.py programs

types:
	$(BIN)/pyright

# A test that fails is run once more; if it passes then, it is named RERUN, and the last line counts it. Fails again: an error.
ALL_TESTS := $(IN_PARALLEL) --reruns 1 -rfEsxXR

test: $(VENV)/developed node_modules/installed
	$(BIN)/pytest $(if $(TESTS),$(IN_PARALLEL) $(TESTS),$(ALL_TESTS))

# All tests once more, with the branches counted that they and their thousands of processes take: half as long again, so
# it is no part of `check`. It runs weekly and before a release.
coverage: prepared
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(ALL_TESTS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=90

# About 20 minutes on a quiet machine. MASSGEN_UPSTREAM=/venv/bin/massgen measures upstream beside us; `python -m
# benchmarks.crowd` takes 1,000 runs instead of 100.
bench: $(VENV)/developed
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.streams
	$(BIN)/python -m benchmarks.overhead
	$(BIN)/python -m benchmarks.waiting
	$(BIN)/python -m benchmarks.commands
	$(BIN)/python -m benchmarks.base
	$(BIN)/python -m benchmarks.crowd --runs 100
	$(BIN)/python -m benchmarks.cluster --runs 100
	$(BIN)/python -m benchmarks.upstream
	$(BIN)/python -m benchmarks.steps

# The long harnesses: faults, thousands of starts and runs. About 50 minutes; ONLY="one-key damage" runs some.
soak: $(VENV)/developed
	$(BIN)/python -W error -m tests.soak $(ONLY)

# Real clients (Claude Code, Codex, Gemini CLI, Goose, the Inspector, …) against local doubles of the model APIs. About 9
# minutes, and 2 GB to fetch; ONLY="codex-start delegation" plays some. What cannot be fetched is skipped, and said.
clients: $(VENV)/developed node_modules/installed tests/clients/node_modules/fetched
	$(BIN)/python -m tests.clients $(ONLY)

# All generated pages of docs/, the index too. About two minutes, most of it for every check and fault on every wire;
# ONLY="config README" writes some.
docs: $(VENV)/developed node_modules/installed
	$(BIN)/python -m docs $(ONLY)

# The conformance suite of the protocol, in both eras and with the tasks extension, against our server.
.PHONY: conformance
conformance: $(VENV)/developed node_modules/installed
	$(BIN)/python -m tests.conformance.suite $(ONLY)

# The bundle for MCPB clients, in dist/, checked by its own validator.
bundle: $(VENV)/developed
	$(BIN)/python -m bundle

# Everything of a release but the upload, of the last commit, into dist/: built twice, tried, listed, signed, verified.
release-check: $(VENV)/releasing node_modules/installed
	$(BIN)/python -m release check

# The documentation as a site, in dist/site; pages of README and docs/.
site: $(VENV)/releasing
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --config-file website/mkdocs.yml
	@echo "Look at it: $(BIN)/python -m http.server --directory dist/site --bind 127.0.0.1"

clean:
	rm -rf $(VENV) node_modules tests/clients/node_modules .coverage* htmlcov build dist

$(VENV)/installed: pyproject.toml
	@$(PYTHON) tests/needs.py python
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/developed: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --group dev
	touch $@

$(VENV)/releasing: $(VENV)/developed
	$(BIN)/python -m pip install --quiet --group release
	touch $@

# Tools of the npm registry that the tests drive: a wire-true double of the providers, the MCP Inspector, the conformance
# suite of the protocol, and axe. The machine's own npm knows its registry and certificates; where there is none, the
# package of Python that brings Node has one.
node_modules/installed: package.json package-lock.json | $(VENV)/developed
	@[ ! -L node_modules ] || { echo 'node_modules is a link, and npm would empty what it leads to. Remove the link.'; exit 1; }
	$(NPM_CI)
	touch $@

tests/clients/node_modules/fetched: tests/clients/package.json tests/clients/package-lock.json | $(VENV)/developed
	$(NPM_INSTALL) --prefix tests/clients && touch $@ || echo "THE REAL CLIENTS COULD NOT BE FETCHED"
