# Every target makes .venv first when requirements.lock or pyproject.toml changed. ARGS="..." is passed on.
.DEFAULT_GOAL := help
.PHONY: help demo test test-ui test-wheel test-models mutants chaos cluster-up cluster-test cluster-down compose-test dev lint bench bench-peers density sizes pictures chart chart-test lock clean venv

ARGS =
PROCESSES = 6
N = 20
SEED = 1
SLEEP = 25

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s  %s\n", $$1, $$2 }' Makefile

demo: venv ## answer a sample question with a local Temporal server, no key needed
	@.venv/bin/sennit demo $(ARGS)

# The suite starts hundreds of Python processes: it keeps bytecode even where that is switched off.
test: venv ## run the test suite against the pinned Temporal server (ARGS="-k name", PROCESSES=0 for one after the other)
	@PYTHONDONTWRITEBYTECODE= .venv/bin/pytest -q -n $(PROCESSES) $(ARGS)

test-ui: venv ## run the browser tests against the newer web UI that deploy/web-ui pins
	@SENNIT_TEST_UI=newer PYTHONDONTWRITEBYTECODE= .venv/bin/pytest -q -n 0 tests/ui $(ARGS)

test-wheel: venv ## install the wheel for every supported Python that is here, and what npm installs beside it
	@.venv/bin/pytest -q -rs -n 2 tests/wheel $(ARGS)

# A server and weights of 130 MB are installed on first use, and kept in the cache folder.
test-models: venv ## run Sennit against a real, very small language model in llama.cpp
	@.venv/bin/pytest -q -rs tests/models $(ARGS)

mutants: venv ## put one wrong line at a time into a copy of the source; the tests must catch each (ARGS="name")
	@PYTHONPATH=.:tests .venv/bin/python -m mutants.run $(ARGS)

chaos: venv ## kill N processes under running agents and check every promise (N=20 SEED=1 SLEEP=25 SPECULATE=1)
	@PYTHONPATH=.:tests .venv/bin/python -m chaos.run --kills $(N) --seed $(SEED) --sleep $(SLEEP) $(if $(SPECULATE),--speculate)

cluster-up: venv ## start Kubernetes and Temporal on Postgres on this machine, as root (ARGS=keda with autoscaling)
	@sh deploy/dev-cluster/up.sh $(ARGS)

cluster-test: venv ## deploy to that cluster and disturb it (ARGS="-k name")
	@sh deploy/dev-cluster/test.sh $(ARGS)

cluster-down: ## end the cluster and leave nothing of it
	@sh deploy/dev-cluster/down.sh

compose-test: venv ## run deploy/compose.yaml on a Docker engine, as root
	@sh deploy/dev-cluster/build.sh temporal
	@.venv/bin/pytest -vs -rs tests/compose $(ARGS)

dev: venv ## run the Temporal server and all workers in the foreground
	@.venv/bin/sennit dev $(ARGS)

lint: venv ## check style and types
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
	@.venv/bin/mypy

bench: venv ## run the benchmarks, for some minutes
	@.venv/bin/python -m benchmarks $(ARGS)

# An environment of some 200 MB is made on first use, and kept in the cache folder.
bench-peers: venv ## time other libraries beside Sennit in one run
	@.venv/bin/python -m benchmarks peers $(ARGS)

sizes: venv ## print how large the tree is
	@.venv/bin/python -m benchmarks.sizes

density: venv ## print how much a reader must hold at once, by package, and the densest files
	@.venv/bin/python -m benchmarks.density

pictures: venv ## take the pictures in docs/pictures again (needs Chromium and Prometheus)
	@PYTHONPATH=.:tests .venv/bin/python tests/ui/pictures.py
	@PYTHONPATH=.:tests .venv/bin/python tests/ui/report_picture.py
	@PYTHONPATH=.:tests .venv/bin/python tests/deploy/dashboard_picture.py

chart: venv ## write the Helm chart from deploy/kubernetes again (needs kubectl)
	@.venv/bin/python deploy/chart/generate.py

# Helm is built on first use, and kept in the cache folder. Without it, `make test` leaves these tests out.
chart-test: venv ## compare the Helm chart with deploy/kubernetes (needs kubectl)
	@PYTHONPATH=.:tests .venv/bin/python -m doubles.helm
	@.venv/bin/pytest -q -rs -n 2 tests/deploy/test_chart.py tests/deploy/test_kubernetes.py $(ARGS)

lock: ## resolve pyproject.toml into requirements.lock (needs uv)
	@sh deploy/lock.sh $(ARGS)

clean: ## remove .venv, caches and build output
	@rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist sennit.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

venv: ## create or refresh .venv
	@sh deploy/venv.sh
