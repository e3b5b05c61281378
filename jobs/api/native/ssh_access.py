"""SSH access to a replica over the native API, for `job-console exec` and other programs."""

from __future__ import annotations

from django.conf import settings
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from jobs.access import sessions, sshhost, sshkeys
from jobs.access.sessions import EntryRefused
from jobs.api.native import shapes
from jobs.api.native.base import ABSENT, REFUSED, NativeView
from jobs.messages.ssh import key_message
from jobs.models import Job, Replica
from jobs.states import ReplicaState
from quotas.access import Verb


class SshAccessRequestShape(shapes.ApiShape):
    """A public key, the line of a `.pub` file, and the replica; the first that runs when left out."""

    public_key = shapes.TextField(max_length=sshkeys.LONGEST)
    role = shapes.TextField(max_length=255, allow_blank=True, default="")
    index = serializers.IntegerField(min_value=0, default=0)


class SshAccessShape(shapes.ApiShape):
    """The SSH gateway's address, its host key, and the user name that stands for the replica."""

    host = serializers.CharField()
    port = serializers.IntegerField()
    host_key = serializers.CharField(help_text="as `known_hosts` has it: kind and key")
    login = serializers.CharField()


class SshAccess(NativeView):
    """SSH access to a replica that runs."""

    scopes = {"POST": "exec"}

    @extend_schema(
        operation_id="jobs_ssh_access",
        request=SshAccessRequestShape,
        responses={200: SshAccessShape, 409: shapes.ProblemDetails, **REFUSED, **ABSENT},
    )
    def post(self, request: Request, public_id: str) -> Response:
        """Let a key into this job alone, until it ends; the same key again changes nothing."""
        job = self.job(public_id, Verb.ENTER)
        data = SshAccessRequestShape.parse(request.data)
        host_key = sshhost.public_key(settings.CONSOLE_HOME)
        if not settings.CONSOLE_SSH_PORT or not host_key:
            raise EntryRefused("no_ssh")
        replica = _find_running(job, data["role"], data["index"])
        try:
            sshkeys.add_for_job(self.person, job, data["public_key"])
        except sshkeys.BadKey as bad:
            detail = ErrorDetail(key_message(bad.code, bad.params), bad.code)
            raise ValidationError({"public_key": [detail]}) from bad
        return Response(
            {
                "host": sshhost.name(request.get_host()),
                "port": settings.CONSOLE_SSH_PORT,
                "host_key": host_key,
                "login": sessions.login_name(job, replica),
            }
        )


def _find_running(job: Job, role: str, index: int) -> Replica:
    """Return that replica, or without a role the first that runs.  Raises Http404, EntryRefused."""
    rows = sessions.current_replicas(job)
    if role and not (rows := rows.filter(role=role, index=index)).exists():
        raise Http404
    replica = rows.filter(state=ReplicaState.RUNNING).order_by("ordinal").first()
    if replica is None or job.is_ended:
        raise EntryRefused("not_running")
    return replica
