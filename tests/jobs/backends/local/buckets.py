"""An object store for tests: moto's server, which speaks S3's own wire."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest
from moto.server import ThreadedMotoServer


@dataclass(frozen=True)
class Store:
    """A server on this machine with the bucket `sets`."""

    host: str

    @property
    def endpoint(self) -> str:
        return f"http://{self.host}"

    def put(self, **objects: bytes | str) -> None:
        for key, body in objects.items():
            self.put_at(key, body)

    def put_at(self, key: str, body: bytes | str) -> None:
        self._client().put_object(Bucket="sets", Key=key, Body=body)

    def read(self, key: str) -> str:
        return str(self._client().get_object(Bucket="sets", Key=key)["Body"].read().decode())

    def keys(self) -> list[str]:
        found = self._client().list_objects_v2(Bucket="sets").get("Contents", [])
        return [each["Key"] for each in found]

    def create(self) -> None:
        self._client().create_bucket(Bucket="sets")

    def _client(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id="AKIATEST",
            aws_secret_access_key="s3cretkey",
        )


@pytest.fixture
def bucket() -> Iterator[Store]:
    with serve("127.0.0.1") as store:
        yield store


@contextmanager
def serve(address: str) -> Iterator[Store]:
    """Serve an empty bucket at an address of this thread's network."""
    server = ThreadedMotoServer(ip_address=address, port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    store = Store(f"{host}:{port}")
    request = urllib.request.Request(f"{store.endpoint}/moto-api/reset", method="POST")
    urllib.request.urlopen(request).close()  # what it knows is known to the whole process
    store.create()
    yield store
    server.stop()
