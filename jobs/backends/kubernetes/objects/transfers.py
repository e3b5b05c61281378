"""Code and data that the data mover fetches into a pod, in init containers of the console's own.

Its program and its orders, with logins and signed addresses, are in the attempt's Secret, which no other
container mounts.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from jobs.backends.kubernetes.objects.code import Code
from jobs.backends.kubernetes.objects.volumes import Object, Volume
from jobs.backends.refusals import refusal
from jobs.backends.remote import bundle
from jobs.backends.staging import transfer_orders
from jobs.backends.staging.transfer_orders import Order

FOLDER: Final = "/job-console-transfers"
CODE: Final = "code"
"""The name of the order for code; those for data are numbered."""

ABOUT: Final = "JOB_CONSOLE_DATA"
"""Tells whoever looks at the pod what its init container fetches."""

_PROGRAM: Final = "program"
_SIGNED: Final = "signed"
_KEY: Final = "transfer."
"""Begins the keys in the Secret."""

MOST_SIGNED_BYTES: Final = 900_000
"""Of compressed signed addresses: a Secret may have 1 MiB in all."""

FETCH: Final = f"""\
set -eu
umask 022
python=$(command -v python3 || command -v python) ||
  {{ echo "The image needs Python 3.10 or newer to fetch this, and has none."; exit 1; }}
"$python" -c 'import sys; sys.version_info >= (3, 10) or sys.exit(1)' ||
  {{ echo "The image needs Python 3.10 or newer to fetch this, and has $("$python" -V 2>&1)."; exit 1; }}
signed=$(mktemp)
if [ -e {FOLDER}/{_SIGNED} ]; then
  "$python" -I -S -m gzip -d - <{FOLDER}/{_SIGNED} >"$signed"
else
  echo '{{}}' >"$signed"
fi
while [ $# -gt 0 ]; do
  order=$(mktemp)
  cat "{FOLDER}/$1" >"$order"
  mkdir -p "$2"
  "$python" -I -S {FOLDER}/{_PROGRAM} "$order" "$2" "$signed"
  shift 2
done
rm -f "$signed"
"""
"""Its arguments are names of orders, each with the folder that is filled."""


def list_orders(brought: Code | None, fetched: Sequence[Volume]) -> dict[str, Order]:
    """Return the orders of a job by their names."""
    found = {CODE: brought.order} if brought is not None and brought.order else {}
    return found | {str(number): volume.order for number, volume in enumerate(fetched) if volume.order}


def secret_values(orders: Mapping[str, Order]) -> dict[str, str]:
    """Return the orders as values of the attempt's Secret."""
    return {f"{_KEY}{name}": json.dumps(order) for name, order in orders.items()}


def add_program(secret: Object) -> Object:
    """Return the attempt's Secret with the data mover's program."""
    return _add(secret, _PROGRAM, bundle.zip_data_mover())


def add_signed(secret: Object, signed: Mapping[str, Sequence[Any]]) -> Object:
    """Return the attempt's Secret with the signed addresses of objects.  Raises Refused for too many."""
    packed = gzip.compress(json.dumps({"objects": signed}).encode(), mtime=0)
    if len(packed) > MOST_SIGNED_BYTES:
        raise refusal("bucket_too_many", place=", ".join(signed), objects=sum(map(len, signed.values())))
    return _add(secret, _SIGNED, packed)


def _add(secret: Object, name: str, value: bytes) -> Object:
    data = {**secret.get("data", {}), f"{_KEY}{name}": base64.b64encode(value).decode()}
    return {**secret, "data": data}


def secret_volume(key: str, orders: Mapping[str, Order]) -> Object:
    """Return the volume with the program and the orders, from the attempt's Secret."""
    is_signed = any(order["uri"] == transfer_orders.SIGNED for order in orders.values())
    names = [_PROGRAM, *orders, *([_SIGNED] if is_signed else [])]
    return {"secret": {"secretName": key, "items": [{"key": _KEY + each, "path": each} for each in names]}}
