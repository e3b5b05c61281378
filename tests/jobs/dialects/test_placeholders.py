"""Secrets and the placeholders that stand for them."""

import json

import pytest
from hypothesis import given

from jobs.dialects import placeholders
from tests.jobs.dialects.strategies import texts


@pytest.mark.parametrize(
    "name",
    [
        "TOKEN",
        "HF_TOKEN",
        "hfToken",
        "DB_PASSWORD",
        "dbPasswd",
        "WANDB_API_KEY",
        "apiKey",
        "APIKEY",
        "AWS_SECRET_ACCESS_KEY",
        "MY_SECRET",
        "clientSecret",
        "SSH_PRIVATE_KEY",
        "GCP_CREDENTIALS",
        "pwd",
    ],
)
def test_names_that_tell_a_secret(name: str) -> None:
    assert placeholders.looks_secret(name)


@pytest.mark.parametrize(
    "name", ["KEYBOARD", "TOKENS", "MAX_TOKENS", "PASSWORD_FILE", "AWS_ACCESS_KEY_ID", "HPWD"]
)
def test_names_that_do_not(name: str) -> None:
    assert not placeholders.looks_secret(name)


def test_a_password_leaves_a_uri() -> None:
    assert placeholders.split_password("hdfs://u:p%40w@nn:9000/x@y", "d") == (
        "hdfs://u:$SECRET:d@nn:9000/x@y",
        "p%40w",
    )


@pytest.mark.parametrize("uri", ["", "hdfs://nn/a:b@c", "hdfs://u@nn/x", "/a/b", "s3://u:$SECRET:d@h"])
def test_a_uri_without_a_password_stays(uri: str) -> None:
    assert placeholders.split_password(uri, "d") == (uri, "")


@given(texts)
def test_a_value_filled_in_again_is_the_same(value: str) -> None:
    text = json.dumps({"A": placeholders.placeholder("n"), "B": "$SECRET:other"})
    assert json.loads(placeholders.fill_json(text, {"n": value})) == {"A": value, "B": "$SECRET:other"}


def test_references_are_found() -> None:
    assert placeholders.reference("$SECRET:a.b-c_1") == "a.b-c_1"
    assert placeholders.reference("x$SECRET:a") is None
    assert placeholders.list_references("$SECRET:a u:$SECRET:b@c $SECRET:a") == ("a", "b")
