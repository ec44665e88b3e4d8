# The PostgreSQL parser is C, so the binary needs the C library of the image that it is built in: both are Debian 12.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=1 go build -trimpath -ldflags='-s -w' -o /wirecheck ./cmd/wirecheck

FROM gcr.io/distroless/base-debian12:nonroot
COPY --from=build /wirecheck /usr/bin/wirecheck
COPY LICENSE /usr/share/doc/wirecheck/LICENSE
EXPOSE 6432 6033
HEALTHCHECK NONE
ENTRYPOINT ["/usr/bin/wirecheck"]
CMD ["--help"]
