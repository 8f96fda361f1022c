# make demo      a lab pair on this machine, site.yml on it, and a chat completion over TP=2
# make demo-down end the demo's lab
# make test      every test; make test-long adds what needs medians or a long time
# make           the controller's environment in .venv
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := environment
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg

.PHONY: environment test-environment demo demo-down test test-long test-unit test-lint test-sanity docs clean help

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 20

environment: .venv/controller ## The controller's environment in .venv

test-environment: .venv/tests ## The same with the test tools

# A link to an interpreter is as old as that: what make compares are files of its own.
.venv/created: .python-version
	@python=$$(scripts/find-python) && echo "make: .venv with $$($$python --version)" && $$python -m venv --clear .venv && touch $@

.venv/controller: .venv/created requirements.txt
	@echo "make: installing ansible-core and what it needs" && .venv/bin/python -m pip install --quiet -r requirements.txt && touch $@

.venv/tests: .venv/controller requirements-dev.txt
	@echo "make: installing the test tools" && .venv/bin/python -m pip install --quiet -r requirements-dev.txt && touch $@

demo: environment ## Lab pair, site.yml, chat completion
	@scripts/demo

demo-down: environment ## End the demo's lab
	@GB10_LAB=$${GB10_LAB:-pair} ansible-playbook playbooks/lab.yml -e lab_name=$${GB10_LAB:-pair} -e lab_state=absent

test: test-environment ## Every test
	@scripts/run-tests

test-long: test-environment ## Medians and repeats
	@scripts/run-tests --long

test-unit: test-environment ## Unit tests with coverage
	@scripts/run-tests unit

test-lint: test-environment ## ansible-lint and changelog
	@scripts/run-tests lint

test-sanity: test-environment ## ansible-test sanity
	@scripts/run-tests sanity

docs: test-environment ## Write the generated parts of README.md and docs
	@python scripts/generate_docs.py

clean: ## Remove what make made here
	rm -rf .venv .ansible .pytest_cache tests/output
