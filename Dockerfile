# docker build -t cloze .          then: docker run -it --user "$(id -u):$(id -g)" -v "$PWD":/work cloze pretrain bert/tiny ...
# With CUDA: docker build -t cloze --build-arg TORCH=torch==2.13.0 .     then: docker run --gpus all ...
# Where pip finds only the torch of GPUs: --build-arg PIP_EXTRA_INDEX_URL=the index of CPU wheels that PyTorch's page of
# installation names.
FROM debian:12 AS build
ARG PIP_EXTRA_INDEX_URL
COPY . /cloze
WORKDIR /cloze
RUN apt-get update -qq && apt-get install -y -qq git && ./package

FROM debian:12-slim
ARG PIP_EXTRA_INDEX_URL
ARG TORCH=torch==2.13.0+cpu
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv && rm -rf /var/lib/apt/lists/*
COPY --from=build /cloze/dist/*.whl /tmp/
# Of the package torch the program needs the libraries alone, and those of CUDA that it depends on.
RUN python3 -m venv /opt/cloze \
  && case "$TORCH" in *+cpu) deps=--no-deps ;; *) deps= ;; esac \
  && /opt/cloze/bin/pip install --no-cache-dir $deps "$TORCH" \
  && /opt/cloze/bin/pip install --no-cache-dir --no-deps /tmp/*.whl \
  && find /opt/cloze/lib/python3*/site-packages/torch -mindepth 1 -maxdepth 1 ! -name lib ! -name version.py -exec rm -rf {} + \
  && rm /tmp/*.whl
ENV PATH=/opt/cloze/bin:$PATH
WORKDIR /work
ENTRYPOINT ["cloze"]
