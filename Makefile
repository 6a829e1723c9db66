# Two commands from a fresh clone: `make demo` (the main job) and `make test`. Both set up what they need.
.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench evidence docs clean

# Whatever is to go to pytest besides; `PYTEST_ARGS="-n0 tests/guard"` for one process and a part.
PYTEST_ARGS ?=

help:  ## what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## .venv with pinned packages, and a browser (does nothing twice)
	@scripts/setup.sh

demo: setup  ## certify the reference agent on the built-in suite: real browser, server, database and ledger
	@.venv/bin/deskcert demo

test: setup check  ## static checks and the whole test suite
	@PYTHONDONTWRITEBYTECODE= .venv/bin/python -m pytest -n 4 --dist worksteal $(PYTEST_ARGS)

check: setup  ## ruff, mypy --strict, import-linter
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports --no-cache

bench: setup  ## speed as ratios in one run, alternating
	@.venv/bin/python -m benchmarks.web
	@.venv/bin/python -m benchmarks.web_peers
	@.venv/bin/python -m benchmarks.ledger
	@.venv/bin/python -m benchmarks.ways
	@.venv/bin/python -m benchmarks.proxy
	@.venv/bin/python -m benchmarks.desktop

evidence: setup  ## the long runs (resumable, ONLY=ledger for one); writes docs/evidence/*.json
	@.venv/bin/python -m scripts.evidence $(if $(ONLY),--only $(ONLY))

docs: setup  ## regenerate the pages that are made from code
	@.venv/bin/python -m scripts.generate_docs

clean:  ## remove what make made
	rm -rf .venv deskcert-out .pytest_cache .mypy_cache .ruff_cache
