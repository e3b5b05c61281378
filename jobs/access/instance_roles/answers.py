"""Credentials as the SDKs of a provider read them."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from jobs.access.instance_roles.sts import Credentials
from jobs.models import RamRole


def render(provider: str, found: Credentials) -> dict[str, Any]:
    """Return the answer for ALIBABA_CLOUD_CREDENTIALS_URI or AWS_CONTAINER_CREDENTIALS_FULL_URI."""
    until = found.expires_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if provider == RamRole.Provider.AWS:
        return {
            "AccessKeyId": found.access_key_id,
            "SecretAccessKey": found.secret,
            "Token": found.token,
            "Expiration": until,
        }
    return {
        "Code": "Success",
        "AccessKeyId": found.access_key_id,
        "AccessKeySecret": found.secret,
        "SecurityToken": found.token,
        "Expiration": until,
    }
