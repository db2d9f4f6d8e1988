# Built on the builder's own platform for the target's, so that no emulation is needed.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
# The modules change seldom, so they come before the sources and stay in the build cache.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS
ARG TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w" -o /out/nudge ./cmd/nudge
# The image below has no shell to make these with.
RUN mkdir -p /out/data /out/tmp && chmod 1777 /out/tmp

# Nothing but the binary. Programs that the config's commands and conditions run are not in it; where they are needed,
# build an image of your own on one that has them and copy /nudge into it.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /src/LICENSE /LICENSE
COPY --from=build /out/nudge /nudge
COPY --from=build --chown=65532:65532 /out/data /data
COPY --from=build --chown=65532:65532 /out/tmp /tmp
# A number, since there is no list of users to look a name up in.
USER 65532:65532
# The config is read from /data/nudge/config.toml when it is there.
ENV HOME=/data XDG_DATA_HOME=/data XDG_CONFIG_HOME=/data
VOLUME /data
# The console listens on the container's own loopback, where -p does not reach it. To open it to the host, say so in
# /data/nudge/config.toml, and publish it to the host's loopback only:
#
#     [web]
#     listen = "0.0.0.0:8484"
#
#     docker run -v nudge:/data -p 127.0.0.1:8484:8484 nudge
#
# There is no variable for it: what is reached from outside should stand in the config, for all to see.
EXPOSE 8484
# While serve runs, doctor asks it through its socket whether all works, and fails when an adapter is stale.
HEALTHCHECK --interval=30s --timeout=10s --start-period=20s --retries=3 \
    CMD ["/nudge", "--data", "/data", "doctor", "--quick"]
ENTRYPOINT ["/nudge", "--data", "/data"]
CMD ["serve"]
