"""A real S3 server on this machine, and one bucket of it for a test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

_numbers = itertools.count()


@dataclass(frozen=True)
class Bucket:
    """An empty bucket, the environment in which clients find it, and a client of the tests' own."""

    name: str
    environment: Mapping[str, str]
    client: Any

    @property
    def url(self) -> str:
        return f"s3://{self.name}"

    def names(self) -> list[str]:
        found = self.client.list_objects_v2(Bucket=self.name).get("Contents", [])
        return sorted(each["Key"] for each in found)

    def put(self, key: str, content: bytes) -> None:
        self.client.put_object(Bucket=self.name, Key=key, Body=content)

    def get(self, key: str) -> bytes:
        content: bytes = self.client.get_object(Bucket=self.name, Key=key)["Body"].read()
        return content

    def remove(self, key: str) -> None:
        self.client.delete_object(Bucket=self.name, Key=key)

    def destroy(self) -> None:
        """Take the bucket away, whoever writes to it meanwhile."""
        from botocore.exceptions import ClientError

        while True:
            for key in self.names():
                self.remove(key)
            try:
                self.client.delete_bucket(Bucket=self.name)
            except ClientError as error:
                assert error.response["Error"]["Code"] == "BucketNotEmpty"
            else:
                return

    def unfinished_uploads(self) -> int:
        """Uploads in parts that were neither completed nor given up: a bucket's owner pays for them."""
        return len(self.client.list_multipart_uploads(Bucket=self.name).get("Uploads", []))


@contextmanager
def s3_server() -> Iterator[str]:
    """The server's address."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def new_bucket(address: str) -> Bucket:
    """A bucket that nobody has used."""
    import boto3

    environment = {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    client = boto3.client(
        "s3",
        endpoint_url=address,
        aws_access_key_id="key",
        aws_secret_access_key="secret",
        region_name="us-east-1",
    )
    name = f"bucket-{next(_numbers)}"
    client.create_bucket(Bucket=name)
    return Bucket(name, environment, client)
