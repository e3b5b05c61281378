# Job Console. `make` or `make help` lists the targets.

PYTHON ?= python3
BIN := .venv/bin
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help run ldap demo docs wheel test lint format mission bench fuzz storm storm-all screenshots messages lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: .venv/runtime ## Start the console at http://127.0.0.1:8000 (PORT=8001 for another port); Ctrl-C ends it
	@exec $(BIN)/python -m console.run

ldap: .venv/runtime ## Install the LDAP library; needs a C compiler and the headers of OpenLDAP and SASL
	@$(BIN)/python -m console.configuration.environment .venv requirements-ldap.lock

demo: .venv/runtime ## Fill the console with workspaces, members, quotas and jobs in every state
	@$(BIN)/python manage.py demo $(ARGS)

docs: .venv/runtime ## Write the reference (settings, fields, conversions) into var/docs (ARGS=FOLDER for another folder)
	@$(BIN)/python -m console.configuration.keys >/dev/null
	@$(BIN)/python -m tests.reference_pages $(ARGS)

wheel: .venv/runtime ## Make the wheel of console and command line, in dist/
	@rm -rf build
	@$(BIN)/python -m pip --disable-pip-version-check wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

test: .venv/dev ## Run all tests that this machine can run; REQUIRE_ALL=1 fails on the others (ARGS="lint sqlite" for some parts)
	@$(BIN)/python -m tests.run $(ARGS)

lint: .venv/dev ## Check style, types, layers, templates and migrations
	@$(BIN)/python -m tests.run lint shellcheck

format: .venv/dev ## Format Python and templates
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@$(BIN)/djlint --reformat --quiet templates

mission: .venv/dev ## Run every row and every sample of the vendors' pages, and print what became of each
	@mkdir -p var && rm -f var/mission.txt
	@MISSION_TABLE=$(CURDIR)/var/mission.txt $(BIN)/python -m pytest -q -n 0 tests/clients/test_mission.py \
	  tests/clients/test_seed_sample.py; status=$$?; cat var/mission.txt; exit $$status

bench: .venv/dev ## Measure speed and memory as ratios (ARGS=--json for machines)
	@$(BIN)/python -m tests.bench $(ARGS)

fuzz: .venv/dev ## Search for job files that break a dialect (ARGS="--seconds 60 dlc")
	@$(BIN)/python -m tests.fuzz $(ARGS)

storm: .venv/dev ## Stress test: break Slurm while 500 jobs run (JOBS=60 for another number), each of which must run once
	@SLURM_STORM=$(or $(JOBS),500) $(BIN)/python -m pytest -q -n 0 tests/jobs/scheduling/slurm_storm.py

storm-all: .venv/dev ## Stress test of a whole console, as root: everything breaks for 20 minutes (ARGS="--minutes 5 --seed 2")
	@$(BIN)/python -m tests.storm_all $(ARGS)

screenshots: .venv/dev ## Take a screenshot of every page, into var/screenshots
	@$(BIN)/python -m tests.screenshots $(ARGS)

messages: .venv/dev ## Collect strings for translation, and compile the translations
	@mkdir -p locale
	@$(BIN)/python -m console.configuration.keys >/dev/null
	@$(BIN)/python manage.py makemessages $(COLLECT)
	@$(BIN)/python manage.py makemessages $(COLLECT) --domain djangojs
	@$(BIN)/python manage.py compilemessages --ignore '.venv/*' --ignore 'var/*'

lock: .venv/dev ## Resolve pyproject.toml into the locked files (ARGS=--upgrade for newer versions)
	@$(BIN)/uv pip compile $(LOCK) --extra server --group build --output-file requirements.lock $(ARGS)
	@$(BIN)/uv pip compile $(LOCK) --extra server --group build --group dev --output-file requirements-dev.lock $(ARGS)
	@$(BIN)/uv pip compile $(LOCK) --extra server --group build --extra ldap --output-file requirements-ldap.lock $(ARGS)

COLLECT := --locale zh_Hans --locale ja --no-obsolete --no-location --no-wrap \
  --ignore '.venv/*' --ignore 'static/vendor/*' --ignore 'docs/*' --ignore 'tests/*' --ignore 'var/*'
LOCK := pyproject.toml --quiet --no-config --no-header --universal --python-version 3.11 --generate-hashes

clean: ## Remove the environment and the tools' caches; var/ stays
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info

# An environment is up to date when it is younger than the file that locks it.
.venv/runtime: requirements.lock console/configuration/environment.py
	@$(PYTHON) -m console.configuration.environment .venv requirements.lock
	@touch $@

.venv/dev: requirements-dev.lock console/configuration/environment.py
	@$(PYTHON) -m console.configuration.environment .venv requirements-dev.lock
	@touch $@ .venv/runtime
