# Ganymede in a container, by the steps of docs/install.md. For the CPU, and for NVIDIA GPUs:
#
#   docker build -t ganymede .
#   docker build -t ganymede:cuda --build-arg GPU=cuda .
#
#   docker run --rm ganymede list models
#   docker run --rm -v "$PWD:/data" ganymede simulate scenario.json
#   docker run --rm --gpus all -v "$PWD:/data" ganymede:cuda train --model dcgan-64 --trace trace.json
#
# tools/check_fresh_root.sh tries the steps of the CPU's image without Docker.
ARG GPU=none
ARG CUDA_IMAGE=nvidia/cuda:12.6.3-cudnn-devel-ubuntu22.04

# What building the GPU backend needs (cmake/cuda.cmake), and of that what running it needs: Debian has neither.
FROM ${CUDA_IMAGE} AS toolkit-cuda
RUN cp -L /usr/include/cudnn*.h /usr/include/*/cudnn*.h /usr/include/nccl.h /usr/local/cuda/include/ 2>/dev/null; \
    cp -P /usr/lib/x86_64-linux-gnu/libcudnn*.so* /usr/lib/x86_64-linux-gnu/libnccl.so* /usr/local/cuda/lib64/ && \
    test -e /usr/local/cuda/include/cudnn.h && test -e /usr/local/cuda/include/nccl.h && \
    mkdir -p /runtime && cd /usr/local/cuda/lib64 && \
    cp -P libcudart.so.* libcublas.so.* libcublasLt.so.* libnvrtc*.so.* libcudnn*.so.* libnccl.so.* /runtime/ && \
    mv "$(readlink -f /usr/local/cuda)" /toolkit

FROM debian:12 AS toolkit-none
RUN mkdir -p /toolkit /runtime

FROM toolkit-${GPU} AS toolkit

FROM debian:12 AS build
COPY --from=toolkit /toolkit /usr/local/cuda
WORKDIR /src
COPY . .
RUN tools/install_packages.sh build package
RUN cmake --preset release -DBUILD_TESTING=OFF -DGANYMEDE_BENCH=OFF \
    -DGANYMEDE_CUDA=$(test -e /usr/local/cuda/bin/nvcc && echo ON || echo OFF)
RUN cmake --build --preset release
RUN cd build/release && cpack -G DEB -B packages && rm -f packages/ganymede-mpi_*

FROM debian:12-slim
COPY --from=toolkit /runtime /usr/local/lib/ganymede-gpu
COPY --from=build /src/build/release/packages/*.deb /packages/
RUN apt-get update && apt-get install -y --no-install-recommends /packages/*.deb && \
    rm -rf /packages /var/lib/apt/lists/* && \
    echo /usr/local/lib/ganymede-gpu >/etc/ld.so.conf.d/ganymede-gpu.conf && ldconfig && \
    useradd --create-home ganymede && mkdir /data && chown ganymede /data
# What NVIDIA's container runtime is to bring in, where there is a GPU.
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER ganymede
WORKDIR /data
ENTRYPOINT ["ganymede"]
CMD ["--help"]
