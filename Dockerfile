# longmatch in a container. The two targets differ in torch and FAISS alone; without --target it is `cpu`:
#   docker build -t longmatch:0.1.0 .
#   docker build -t longmatch:0.1.0-gpu --target gpu .
ARG PYTHON=3.11

FROM python:${PYTHON}-slim-bookworm AS builder
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1
WORKDIR /src
RUN python -m venv /opt/longmatch
ENV PATH=/opt/longmatch/bin:$PATH
COPY constraints.txt ./

# torch comes first: it is most of the image, and changes seldom.
FROM builder AS builder-cpu
RUN pip install --constraint constraints.txt --extra-index-url https://download.pytorch.org/whl/cpu torch
COPY setup.cfg pyproject.toml README.md LICENSE ./
COPY engine ./engine
COPY indexer ./indexer
COPY longmatch ./longmatch
RUN pip install --constraint constraints.txt '.[cpu,serve,mcp,arrow,plot]'

# The usual build of torch brings CUDA with it; the host needs a driver and the NVIDIA container toolkit.
FROM builder AS builder-gpu
RUN pip install --constraint constraints.txt torch
COPY setup.cfg pyproject.toml README.md LICENSE ./
COPY engine ./engine
COPY indexer ./indexer
COPY longmatch ./longmatch
RUN pip install --constraint constraints.txt '.[gpu,serve,mcp,arrow,plot]'

FROM python:${PYTHON}-slim-bookworm AS runtime
LABEL org.opencontainers.image.title="longmatch" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV PATH=/opt/longmatch/bin:$PATH \
    PYTHONUNBUFFERED=1
# Indexes and documents are mounted at /data. Whoever runs the container may take another user: docker run --user.
RUN useradd --uid 1000 --create-home longmatch && install --directory --owner longmatch /data
USER 1000
WORKDIR /data
EXPOSE 8321
ENTRYPOINT ["longmatch"]
CMD ["--help"]

FROM runtime AS gpu
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
COPY --from=builder-gpu /opt/longmatch /opt/longmatch

FROM runtime AS cpu
COPY --from=builder-cpu /opt/longmatch /opt/longmatch
