# The book's environment, with JupyterLab at chapter 10.
#
#   docker build -t arithmetic-book .                          # then: docker run -p 8888:8888 arithmetic-book
#   docker run arithmetic-book make test                       # the book and all its tests, inside
#   docker run -p 8888:8888 arithmetic-book make page CHAPTER=11 ARGS="--host 0.0.0.0 --port 8888 --no-browser"
#
# A server inside listens to the container alone, unless --host says otherwise; `make serve` takes the same ARGS.
#
# The package index's torch for Linux brings CUDA along. For the small CPU build give the index that PyTorch's own page
# names: --build-arg TORCH_INDEX=ADDRESS. For a GPU, with flash-attn compiled where no wheel fits, by a CUDA of the same
# major version as that of torch in requirements.lock, or torch refuses:
#
#   docker build -t arithmetic-book:gpu --build-arg BASE=nvidia/cuda:13.0.2-devel-ubuntu24.04 \
#       --build-arg PACKAGES="build-essential git make ninja-build python3-dev python3-venv" --build-arg EXTRA=requirements-gpu.txt .
#   docker run --gpus all arithmetic-book:gpu .venv/bin/arithlib doctor
ARG BASE=python:3.13-slim
FROM ${BASE}
ARG PACKAGES="chromium git make"
# Their versions are those of the base, which the builder chooses.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends ${PACKAGES} && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home reader
# By name: which number is free depends on the base, and editors ask for the name.
# hadolint ignore=DL3066
USER reader
WORKDIR /home/reader/book
COPY --chown=reader . .
ARG TORCH_INDEX=""
RUN if [ -n "$TORCH_INDEX" ]; then python3 -m venv .venv && .venv/bin/python -m pip install --no-cache-dir \
    "$(grep '^torch==' requirements.txt)" --index-url "$TORCH_INDEX"; fi
RUN bash book/workflow/setup.sh && .venv/bin/python -m pip install --no-cache-dir jupyterlab
ARG EXTRA=""
RUN if [ -n "$EXTRA" ]; then .venv/bin/python -m pip install --no-cache-dir --no-build-isolation -r "$EXTRA"; fi
EXPOSE 8888
CMD [".venv/bin/jupyter", "lab", "--ip=0.0.0.0", "--no-browser", "--LabApp.default_url=/lab/tree/notebooks/10_grokking.ipynb"]
