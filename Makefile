# make run    starts the host (and makes its environment first)
# make test   runs everything that CI runs
# make lock   pins the dependencies again (needs uv)

VENV   := .venv
PYTHON ?= python3
UV     := $(shell command -v uv 2>/dev/null)
BIN    := $(VENV)/bin

ifdef UV
  CREATE  = $(UV) venv --quiet --allow-existing --python $(PYTHON) $(VENV)
  INSTALL = $(UV) pip install --quiet --python $(BIN)/python
else
  CREATE  = $(PYTHON) -m venv $(VENV)
  INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
endif

.PHONY: run test check lock clean

run: $(VENV)/run.stamp
	@exec $(BIN)/pumice run

test: check
	$(BIN)/python -m pytest -n 2 --dist loadgroup

check: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

NODEPS = $(INSTALL) --no-deps --no-build-isolation --no-binary claude-agent-sdk --require-hashes -r requirements-nodeps.lock

$(VENV)/test.stamp: requirements-nodeps.lock

$(VENV)/%.stamp: requirements-%.lock pyproject.toml
	@$(CREATE)
	@echo "installing the pinned dependencies of '$*' ..."
	@$(INSTALL) --require-hashes -r $<
	@$(INSTALL) --no-deps --no-build-isolation -e .
	@if [ "$*" = test ]; then $(NODEPS); fi
	@touch $@

lock:
	$(UV) pip compile -q --no-header --no-annotate --universal --python-version 3.11 --generate-hashes --extra all --extra build pyproject.toml -o requirements-run.lock
	$(UV) pip compile -q --no-header --no-annotate --universal --python-version 3.11 --generate-hashes --extra all --extra build --extra test -c requirements-run.lock pyproject.toml -o requirements-test.lock

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
