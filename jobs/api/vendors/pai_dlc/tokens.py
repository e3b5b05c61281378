"""Links for people without an account here: GetToken and GetTensorboardSharedUrl, which are refused.

The gateway admits a person's sign-in alone, checks their right again and again, and ends with it.  A link
that anybody may use until a time would be none of these.
"""

from __future__ import annotations

from typing import Final

from jobs.api.vendors.operations import Kind, Location, Operation, Parameter, Support

_NOTE: Final = (
    "jobs and TensorBoards are open to people who are signed in and have access to them; nobody else can be "
    "given a link. Accessibility=PUBLIC shares a job with its workspace."
)

OPERATIONS: Final = (
    Operation(
        "GetToken",
        "GET",
        "api/v1/tokens",
        parameters=(
            Parameter("TargetId"),
            Parameter("TargetType", choices=("job", "tensorboard")),
            Parameter("ExpireTime", Kind.INTEGER, default=604_800),
            Parameter("TokenSettings", Kind.ANY, since="1.11.6"),
        ),
        support=Support.REFUSED,
        note=_NOTE,
    ),
    Operation(
        "GetTensorboardSharedUrl",
        "GET",
        "api/v1/tensorboards/<str:TensorboardId>/sharedurl",
        parameters=(
            Parameter("TensorboardId", location=Location.PATH, required=True),
            Parameter("ExpireTimeSeconds", Kind.INTEGER),
        ),
        support=Support.REFUSED,
        note=_NOTE,
    ),
)
