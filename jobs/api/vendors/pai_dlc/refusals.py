"""Errors that the operations of PAI-DLC raise themselves."""

from __future__ import annotations

from jobs.api.vendors.alibaba import AlibabaApi
from jobs.api.vendors.api import ErrorKind, VendorError
from jobs.api.vendors.operations import Call, Support


def refusal(kind: ErrorKind, message: str) -> VendorError:
    """Return the vendor's error of a kind."""
    status, code = AlibabaApi.errors[kind]
    return VendorError(status, code, message)


def refuse_unsupported(call: Call) -> None:
    """Raise the vendor's error that names the given parameters which the console does not support.

    An empty list is none: the SDK sends one for every list that is not set, from 1.11.6 on.
    """
    given = [
        each
        for each in call.operation.parameters
        if each.support is Support.REFUSED and call.values[each.name] not in (each.default, [])
    ]
    if given:
        sentences = " ".join(f"{each.name} is not supported: {each.note}" for each in given)
        raise refusal(ErrorKind.UNSUPPORTED, sentences)
