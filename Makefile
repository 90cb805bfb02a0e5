# Every target makes .venv first if it is not there. `make help` lists them.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Without bytecode each process compiles the tests and vlrl again: 24 s of each of two that collect the tests.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install dev quickstart test test-times test-slow cluster-test test-slow-share check reference format docs bench gpu-check gpu-bundle trl-env ecosystem-env large-apps lock check-locks vllm-source vllm-newest clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

install: ## make .venv with the locked set (cuda.lock where there is an NVIDIA GPU, else cpu.lock)
	@$(PYTHON) tools/install.py

dev: ## the same, with what tests and checks need
	@$(PYTHON) tools/install.py --dev

quickstart: ## install, train a small vision-language model on this machine and write a report
	@$(PYTHON) tools/install.py --behind
	@$(BIN)/vlrl quickstart

# Four keep two cores busy: much of what a file does is to wait for a process or a time limit.
test: dev ecosystem-env ## run the tests (the slow proofs apart), four files at a time
	@$(BIN)/python -m pytest -n 4 --dist loadfile --junitxml=build/tests.xml

test-times: ## list the slowest tests and files of the last `make test`
	@$(PYTHON) tools/test_times.py

test-slow: dev ecosystem-env trl-env large-apps ## run the slow tests (PROOFS="FILE TEST ..." for some) and record which passed
	@$(BIN)/python tools/slow_proofs.py --record $(PROOFS); code=$$?; $(BIN)/python tools/families_page.py && exit $$code

cluster-test: dev ## run the quickstart's first steps on two hosts: network namespaces, as root
	$(BIN)/python -m pytest -m slow tests/cluster/test_two_hosts.py

test-slow-share: dev ecosystem-env trl-env large-apps ## run slow tests for SLOW_MINUTES (25), the longest not run first; record nothing
	@$(BIN)/python tools/slow_proofs.py --minutes $(or $(SLOW_MINUTES),25) $(PROOFS)

check: dev ## ruff, mypy (strict for vlrl/, calls for the rest), and the length of new commits' subjects
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy examples/library.py examples/own_loop.py
	$(BIN)/mypy --config-file tests/mypy.ini tests benchmarks tools deploy examples
	$(BIN)/python tools/commit_subjects.py

reference: dev ## write docs/reference/ and the table of docs/families.md from the code
	@$(BIN)/python tools/reference.py
	@$(BIN)/python tools/families_page.py

format: dev ## rewrite the sources as `make check` wants them
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: dev ## build the documentation as a site in build/docs; a link that leads nowhere is an error
	@$(BIN)/sphinx-build -q -W --keep-going -b html -d build/doctrees -c docs . build/docs
	@echo build/docs/index.html

bench: install trl-env ## time a step on vlrl, on TRL and on plain rows, side by side; a table for docs/benchmarks.md
	@$(BIN)/python benchmarks/train_table.py

gpu-check: install ## run the stages of benchmarks/gpu on this machine's GPU (STAGES="facts training" for some)
	@$(BIN)/python benchmarks/gpu/check.py $(STAGES)

gpu-bundle: install ## pack build/gpu_bundle for a GPU machine without network: the repository, wheels, run.sh
	@$(BIN)/python tools/gpu_bundle.py

trl-env: ## make .venv-trl, the environment of the peer that `make bench` measures against
	@$(PYTHON) tools/install.py --lock trl --venv .venv-trl

ecosystem-env: ## make .venv-ecosystem: verifiers, OpenEnv and BrowserGym, which cannot live beside vlrl's set, for the tests
	@$(PYTHON) tools/install.py --lock ecosystem --venv .venv-ecosystem

large-apps: ## install the large apps of gui/x11 from Debian, for the slow tests: LibreOffice, Firefox, Claws Mail (190 MB)
	@$(PYTHON) tools/install.py --large-apps

lock: dev ## write requirements/*.lock again from requirements/*.in (UPGRADE=1: with the newest versions)
	$(BIN)/python tools/lock.py $(if $(UPGRADE),--upgrade) cpu dev cluster cuda trl ecosystem

check-locks: dev ## resolve the locks for every Python that they are for, without installing them
	$(BIN)/python tools/lock.py check

vllm-source: dev ## fetch the Python source of cuda.lock's vLLM (17 MB) and hold vlrl against it
	@$(BIN)/python tools/vllm_source.py pinned

vllm-newest: dev ## the same with vLLM's newest release: an early warning of what will break
	@$(BIN)/python tools/vllm_source.py newest

clean: ## remove .venv, .venv-* and what tools left behind (runs/ stays)
	rm -rf $(VENV) .venv-trl .venv-ecosystem build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage htmlcov
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
