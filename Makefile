# Everything a newcomer or a machine runs. Each target does its own set-up in .venv.
#   make demo       install, compare with scikit-learn on real data, draw demo.png, write demo_report.html
#   make test       install with the test extras and run the suite
#   make docs       the site with its gallery, into build/docs (warnings are errors; no network once installed)
#   make check-docs  every page of that site in headless Chromium: console, width, pictures, links, search
#   make reproduce  every table and figure of the papers, into experiments/results (hours; resumable)
#   make bench      other packages on the same objectives (benchopt, a small set), as a table of ratios
#   make test-all   the same with long tests and many more random examples
#   make test-oldest  the suite with the oldest dependencies (Python 3.10 or 3.11)
#   make sanitize   the native tests under AddressSanitizer and UBSan (Linux, gcc)
#   make lint       ruff, mypy, layers    make format   rewrite in the project's style
#   make clean      remove everything that was built

PYTHON ?= python3
WORKERS ?= 2
VENV := .venv
BIN := $(VENV)/bin
SANITIZED := build/sanitize
OLDEST := build/oldest
BENCH := build/bench
# adelie wants NumPy 1, which later versions of pyarrow, with which benchopt writes, do not take; later ones of
# cvxpy bring a HiGHS that OR-Tools cannot be loaded beside.
PEERS := "pyarrow<22" adelie celer "cvxpy<1.8" cyanure ortools rehline skglm snapml sortedl1
# What pyproject.toml requires of a build, and what scikit-build-core would fetch besides.
BUILD_TOOLS := "scikit-build-core>=0.11" "nanobind>=2.4" "cmake>=3.18" ninja

SOURCES := pyproject.toml CMakeLists.txt README.md LICENSE \
           $(shell find src -name '*.py' -o -name '*.hpp' -o -name '*.cpp' -o -name 'page.*')

.PHONY: bench check-docs demo docs reproduce test test-all test-oldest sanitize lint format clean check-tools

demo: $(VENV)/.installed
	$(BIN)/python -m sparsvm.demo

test: $(VENV)/.test-installed
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow" tests

# The environment is read anew (-E): pages of the API are made only for pages that Sphinx has not read before.
docs: $(VENV)/.docs-installed
	$(BIN)/sphinx-build -W --keep-going -E -q -d build/doctrees docs build/docs
	@echo "The site is in build/docs/index.html."

check-docs: docs
	$(BIN)/python docs/check_site.py build/docs

# With QUICK=1 a small version of each, into build/experiments.
reproduce: $(VENV)/.test-installed
	$(BIN)/python experiments/reproduce.py $(if $(QUICK),--quick --fresh)

# The packages that are compared live in an environment of their own.
bench: $(BENCH)/.installed
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BENCH)/bin/python benchmarks/bench.py

test-all: $(VENV)/.test-installed
	$(BIN)/python -m pytest -n $(WORKERS) --hypothesis-profile=thorough tests

test-oldest: $(OLDEST)/.installed
	$(OLDEST)/bin/python -m pytest -n $(WORKERS) -m "not slow" tests

lint: $(VENV)/.test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(VENV)/.test-installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	find src/core -name "*.[hc]pp" | xargs $(BIN)/clang-format -i

# The package is built once, with tools that stay where they are: without build isolation CMake finds
# its last build in build/ and compiles only what has changed. Further extras need no build.
$(VENV)/.tools: | check-tools
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q $(BUILD_TOOLS)
	@touch $@

$(VENV)/.installed: $(SOURCES) $(VENV)/.tools
	$(BIN)/pip install -q --no-build-isolation ".[all]"
	@touch $@

$(VENV)/.test-installed: $(VENV)/.installed
	$(BIN)/pip install -q "sparsvm[test,dev]"
	@touch $@

$(VENV)/.docs-installed: $(VENV)/.installed
	$(BIN)/pip install -q "sparsvm[docs]"
	@touch $@

$(OLDEST)/.installed: $(SOURCES) tests/oldest.txt | check-tools
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/pip install -q $(BUILD_TOOLS)
	$(OLDEST)/bin/pip install -q --no-build-isolation -c tests/oldest.txt ".[test]" -Cbuild-dir=$(OLDEST)/cmake
	@touch $@

# The wheel of the last build, so that nothing is compiled again.
$(BENCH)/.installed: $(VENV)/.installed
	$(BIN)/pip wheel -q --no-build-isolation --no-deps -w $(BENCH)/wheel .
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/pip install -q --force-reinstall --no-deps $(BENCH)/wheel/*.whl
	$(BENCH)/bin/pip install -q sparsvm benchopt matplotlib $(PEERS)
	@touch $@

# lightning's last version wants the numerical libraries of its time, and Python 3.11 at most.
build/lightning/.installed:
	$(PYTHON) -m venv build/lightning
	build/lightning/bin/pip install -q "numpy==1.24.4" "scipy==1.10.1" "scikit-learn==1.2.2" "Cython<3" "setuptools<60" wheel
	build/lightning/bin/pip install -q --no-build-isolation "sklearn-contrib-lightning==0.6.2.post0"
	@touch $@

# The sanitizers' run-time libraries come before Python itself, and the C++ library with them, since
# ASan looks up the function that throws exceptions when it starts. Python never frees everything,
# so leaks are not looked for. Fresh memory is filled with NaN, so that numbers made of what nobody has
# written are seen.
sanitize: $(SANITIZED)/venv/.installed
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0:max_malloc_fill_size=1073741824:malloc_fill_byte=255 UBSAN_OPTIONS=print_stacktrace=1 \
	$(SANITIZED)/venv/bin/python -m pytest -n $(WORKERS) -m "native and not slow" tests

$(SANITIZED)/venv/.installed: $(SOURCES) | check-tools
	$(PYTHON) -m venv $(SANITIZED)/venv
	$(SANITIZED)/venv/bin/pip install -q ".[test]" -Cbuild-dir=$(SANITIZED)/cmake \
	  -Ccmake.define.SPARSVM_SANITIZE=ON -Ccmake.build-type=RelWithDebInfo -Cinstall.strip=false
	@touch $@

clean:
	rm -rf $(VENV) build dist docs/api docs/gallery docs/measured demo*.png demo_report.html .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	find src tests benchmarks experiments -name __pycache__ -prune -exec rm -rf {} +

# Says in one sentence what is not there, instead of a long error from a tool that needs it.
check-tools:
	@missing=""; \
	add() { missing="$${missing:+$$missing; }$$1"; }; \
	if ! $(PYTHON) -c "" 2>/dev/null; then \
	  add "Python ($(PYTHON) does not run; name another with PYTHON=...)"; \
	else \
	  $(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 10))" || \
	    add "Python 3.10 or later ($(PYTHON) is $$($(PYTHON) --version))"; \
	  $(PYTHON) -c "import ensurepip, venv" 2>/dev/null || \
	    add "Python's venv module (Debian: apt install python3-venv)"; \
	  $(PYTHON) -c "import os, sys, sysconfig; sys.exit(not os.path.exists(os.path.join(sysconfig.get_path('include'), 'Python.h')))" || \
	    add "Python's headers (Debian: apt install python3-dev)"; \
	fi; \
	found=""; \
	for compiler in "$$CXX" c++ g++ clang++; do \
	  if [ -z "$$found" ] && [ -n "$$compiler" ] && \
	     printf '#include <concepts>\n#include <span>\nint main() {}\n' | \
	     $$compiler -std=c++20 -fsyntax-only -x c++ - 2>/dev/null; then found=$$compiler; fi; \
	done; \
	[ -n "$$found" ] || add "a C++20 compiler (Debian: apt install g++, version 11 or later)"; \
	if [ -n "$$missing" ]; then echo "To build sparsvm, please install what is missing: $$missing." >&2; exit 1; fi
