# The gateway's image: the program, on the C library that it needs.
#
#   docker build -t oncegate .
#   docker run --read-only --stop-timeout 60 -v "$PWD/oncegate.yaml:/etc/oncegate/oncegate.yaml:ro" oncegate
#
# Both base images can be others. BUILDER needs cargo, a C compiler and a shell; RUNTIME a C library at
# least as new as the builder's and libgcc, so a distroless `cc` without any shell will do, and is best.
ARG BUILDER=rust:1.95-slim-bookworm
ARG RUNTIME=debian:bookworm-slim

FROM ${BUILDER} AS build
WORKDIR /build
# The dependencies, with nothing of ours: this layer lasts until a manifest changes. Cargo wants to
# see every benchmark that the manifest names.
COPY Cargo.toml Cargo.lock ./
COPY benches benches
RUN mkdir src && touch src/lib.rs && echo 'fn main() {}' >src/main.rs \
    && cargo build --release --locked
# Cargo compares times, and a file of the checkout may be older than the build above.
COPY config config
COPY src src
RUN touch src/lib.rs src/main.rs && cargo build --release --locked \
    && mkdir /data

FROM ${RUNTIME}
LABEL org.opencontainers.image.title="oncegate" \
      org.opencontainers.image.description="An HTTP reverse proxy that makes retries safe" \
      org.opencontainers.image.licenses="Apache-2.0 OR MIT"
COPY LICENSE-APACHE LICENSE-MIT /usr/share/doc/oncegate/
COPY --from=build /build/target/release/oncegate /usr/bin/oncegate
# Where an embedded ledger goes: mount a volume, the rest may be read-only.
COPY --from=build --chown=65532:65532 /data /var/lib/oncegate
USER 65532:65532
EXPOSE 8080 9090
# Longer than the default of 10 s: `--stop-timeout` has to be above drain_delay + drain_timeout.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["/usr/bin/oncegate", "health"]
ENTRYPOINT ["/usr/bin/oncegate"]
CMD ["serve", "--config", "/etc/oncegate/oncegate.yaml"]
