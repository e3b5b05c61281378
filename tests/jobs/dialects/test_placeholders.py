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
def test_secret_looking_names_are_recognised(name: str) -> None:
    assert placeholders.looks_secret(name)


@pytest.mark.parametrize(
    "name", ["KEYBOARD", "TOKENS", "MAX_TOKENS", "PASSWORD_FILE", "AWS_ACCESS_KEY_ID", "HPWD"]
)
def test_ordinary_names_are_not_taken_for_secrets(name: str) -> None:
    assert not placeholders.looks_secret(name)


def test_password_is_split_from_uri() -> None:
    assert placeholders.split_password("hdfs://u:p%40w@nn:9000/x@y", "d") == (
        "hdfs://u:$SECRET:d@nn:9000/x@y",
        "p%40w",
    )


@pytest.mark.parametrize("uri", ["", "hdfs://nn/a:b@c", "hdfs://u@nn/x", "/a/b", "s3://u:$SECRET:d@h"])
def test_uri_without_password_stays_unchanged(uri: str) -> None:
    assert placeholders.split_password(uri, "d") == (uri, "")


@given(texts)
def test_secret_value_survives_being_filled_in(value: str) -> None:
    text = json.dumps({"A": placeholders.placeholder("n"), "B": "$SECRET:other"})
    assert json.loads(placeholders.fill_json(text, {"n": value})) == {"A": value, "B": "$SECRET:other"}


def test_secret_references_are_found() -> None:
    assert placeholders.reference("$SECRET:a.b-c_1") == "a.b-c_1"
    assert placeholders.reference("x$SECRET:a") is None
    assert placeholders.list_references("$SECRET:a u:$SECRET:b@c $SECRET:a") == ("a", "b")
