# docker build -t cloze --build-arg CPU_INDEX=ADDRESS .
#   then: docker run -it --user "$(id -u):$(id -g)" -v "$PWD":/work cloze pretrain bert/tiny ...
# CPU_INDEX is the index of CPU wheels that PyTorch's page of installation names: the build needs it, with CUDA too, since
# PyPI has the torch of GPUs alone.
# With CUDA: docker build -t cloze --build-arg CPU_INDEX=ADDRESS --build-arg TORCH=torch==2.13.0 .
#   then: docker run --gpus all ...
FROM debian:12 AS build
ARG CPU_INDEX
ENV PIP_EXTRA_INDEX_URL=$CPU_INDEX
COPY . /cloze
WORKDIR /cloze
RUN apt-get update -qq && apt-get install -y -qq git && ./package

FROM debian:12-slim
ARG CPU_INDEX
ARG TORCH=torch==2.13.0+cpu
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv && rm -rf /var/lib/apt/lists/*
COPY --from=build /cloze/dist/*.whl /tmp/
# Of the package torch the program needs the libraries alone, and those of CUDA that it depends on.
RUN python3 -m venv /opt/cloze \
  && case "$TORCH" in *+cpu) from="--no-deps --extra-index-url $CPU_INDEX" ;; *) from= ;; esac \
  && /opt/cloze/bin/pip install --no-cache-dir $from "$TORCH" \
  && /opt/cloze/bin/pip install --no-cache-dir --no-deps /tmp/*.whl \
  && find /opt/cloze/lib/python3*/site-packages/torch -mindepth 1 -maxdepth 1 ! -name lib ! -name version.py -exec rm -rf {} + \
  && rm /tmp/*.whl
ENV PATH=/opt/cloze/bin:$PATH
WORKDIR /work
ENTRYPOINT ["cloze"]
