# The program is static (make release), so the image holds it, its license and nothing else that could run.
#   docker build -t wirecheck .
#   docker run -p 6432:6432 -e WIRECHECK_LISTEN=postgres://0.0.0.0:6432 -e WIRECHECK_UPSTREAM=postgres://db:5432 wirecheck
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make release

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /src/bin/release/wirecheck /usr/bin/wirecheck
COPY LICENSE /usr/share/doc/wirecheck/LICENSE
EXPOSE 6432 6033
# It asks the address of --http below. A proxy with another address needs another check.
HEALTHCHECK --interval=10s --timeout=6s --start-period=10s CMD ["/usr/bin/wirecheck", "health", "127.0.0.1:9090"]
ENTRYPOINT ["/usr/bin/wirecheck"]
CMD ["proxy", "--http", "127.0.0.1:9090"]
