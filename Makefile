# Everything runs in .venv. `make demo` installs what a user needs; `make venv`, `test` and `lint` add what developers
# need. FAISS: the GPU build where a GPU is seen, else the CPU one. torch: without a GPU the build for the CPU, which
# needs no CUDA (3 GB); TORCH_INDEX= takes it from the usual package index instead.
PYTHON ?= python3
FAISS := $(shell command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi -L 2>/dev/null | grep -q GPU && echo gpu || echo cpu)
TORCH_INDEX ?= $(if $(filter cpu,$(FAISS)),https://download.pytorch.org/whl/cpu)
BIN := .venv/bin
# Compiled modules are kept, whatever the environment says: without them each process takes eight seconds to import torch
# and transformers.
unexport PYTHONDONTWRITEBYTECODE
# Packages are compiled when they are first imported: most never are, and compiling all takes over a minute.
PIP := $(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt

.PHONY: venv demo test test-peers test-ray lint docs clean

venv: .venv/installed

.venv/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "longmatch needs Python 3.11 or newer; name one: make venv PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	@echo "Installing torch: 0.8 GB on disk."
	$(PIP) $(if $(TORCH_INDEX),--retries 0 --extra-index-url $(TORCH_INDEX)) torch
	touch $@

.venv/user: setup.cfg constraints.txt | .venv/python
	@echo "Installing longmatch and some 50 packages into .venv: 1.4 GB on disk with torch for the CPU, 2 to 5 minutes."
	$(PIP) --editable '.[$(FAISS)]'
	touch $@

.venv/installed: setup.cfg constraints.txt | .venv/python
	@echo "Installing longmatch and what its tests and benchmarks need into .venv: 2.6 GB on disk, 3 to 10 minutes."
	$(PIP) --editable '.[$(FAISS),benchmarks,demo,dev,haystack,langchain,llama-index,mcp]'
	touch $@ .venv/user

# First an answer by words, in seconds; then vectors of all documents, and the same question again.
demo: .venv/user
	@echo "Indexing demo/corpus, PEPs and EIPs in nine formats, by words: some 20 seconds."
	$(BIN)/longmatch index demo.lm demo/corpus --encode none
	$(BIN)/longmatch query demo.lm demo/queries/eip-7702.pdf -k 3
	@echo
	@echo "That was eip-7702.pdf against demo/corpus (PEPs and EIPs in nine formats), by words alone."
	@echo "Now vectors are added, which takes a minute or two; then comes the same query by words and meaning."
	@echo
	$(BIN)/longmatch index demo.lm
	$(BIN)/longmatch query demo.lm demo/queries/eip-7702.pdf -k 5
	@echo
	@echo "Try next:"
	@echo "  $(BIN)/longmatch query demo.lm demo/queries/pep-0695.md -k 5 --where \"doc_id like 'peps/%'\""
	@echo "  $(BIN)/longmatch query demo.lm --id peps/pep-0484.md -k 1 --sections 5"
	@echo "  $(BIN)/longmatch query demo.lm demo/queries/pep-0695.md -k 2 --format json"
	@echo "  $(BIN)/longmatch show demo.lm"
	@echo "  $(BIN)/longmatch index papers.lm YOUR_FOLDER"

# All tests, slow ones included, since `tests` is named; `pytest` by itself leaves slow ones out.
test: venv
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder --durations 40 tests

# The programs and libraries that ours is measured against: nothing may be skipped for want of one.
test-peers: .venv/peers
	$(BIN)/python -m pytest --junitxml=.venv/peers.xml tests/benchmarks/peers tests/benchmarks/speed
	! grep -o '<skipped[^>]*' .venv/peers.xml

.venv/peers: .venv/installed
	$(PIP) --editable '.[$(FAISS),benchmarks,peers,dev]'
	touch $@

# The tests that need Ray, which takes 250 MB more: nothing may be skipped for want of it.
RAY_TESTS := tests/indexer/test_cluster.py tests/indexer/test_partition_actors.py tests/search/test_partition_conformance.py
test-ray: .venv/ray
	$(BIN)/python -m pytest -m ray --junitxml=.venv/ray.xml $(RAY_TESTS)
	! grep -o '<skipped[^>]*' .venv/ray.xml

.venv/ray: .venv/installed
	$(PIP) --editable '.[$(FAISS),benchmarks,dev,ray]'
	touch $@

# The pages of docs/ as a site; a broken link fails.
docs: .venv/docs
	$(BIN)/python -m mkdocs build --strict

.venv/docs: .venv/installed
	$(PIP) --editable '.[$(FAISS),docs]'
	touch $@

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf .venv demo.lm build site *.egg-info
