# The command in an image of its own, from the package that docs/packaging.md tells of.
#   docker build -t coppice .
#   docker run --rm -p 127.0.0.1:8080:8080 -v ~/models:/models:ro coppice serve --host 0.0.0.0 -m /models/model.gguf
FROM debian:bookworm AS build
WORKDIR /source
COPY . .
RUN ./dev package

FROM debian:bookworm-slim
COPY --from=build /source/build/release/packages/coppice_*.deb /packages/
RUN apt-get update && \
    apt-get install -y --no-install-recommends /packages/coppice_*.deb && \
    rm -rf /packages /var/lib/apt/lists/* && \
    useradd --create-home --shell /usr/sbin/nologin coppice
USER coppice
WORKDIR /home/coppice
EXPOSE 8080
# /health answers 200 once a model is loaded. bash can speak to a port by itself, so that no client has to be installed.
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8080 && printf 'GET /health HTTP/1.0\\r\\n\\r\\n' >&3 && read -r _ status _ <&3 && [[ $status == 200 ]]"]
ENTRYPOINT ["coppice"]
CMD ["serve", "--host", "0.0.0.0"]
