"""Nodes over the administration's API: list them, cordon, drain and uncordon."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.http import Http404
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from console.admin_api.base import CHANGED, LONGEST_REASON, PAGE, AdminView, JobNameShape
from jobs.admin import admin_actions
from jobs.api.native import shapes
from jobs.api.native.base import ABSENT, AFTER, LIMIT, REFUSED
from quotas.audit import action_record
from quotas.clusters import inventory
from quotas.models import AdminAction, Node, NodeState

DECIDED = (NodeState.SCHEDULABLE, NodeState.CORDONED, NodeState.DRAINING)
"""States that an admin sets."""


class AdminNodeShape(shapes.ApiShape):
    """A node: what it has, what the engine says of it, and an admin's decision.

    `schedulable` and `unavailable` (why not) are the engine's.  `empty_by` is when jobs on a draining node
    are moved; null: they run until they end.
    """

    cluster = serializers.CharField(source="cluster.slug")
    name = serializers.CharField()
    gpus = serializers.DictField(child=serializers.IntegerField())
    cpu_milli = serializers.IntegerField()
    memory_mib = serializers.IntegerField()
    state = serializers.CharField(help_text="schedulable, cordoned, draining or down")
    reason = serializers.CharField(source="state_why", allow_blank=True)
    set_at = serializers.DateTimeField(source="state_at", allow_null=True)
    empty_by = serializers.DateTimeField(allow_null=True)
    schedulable = serializers.BooleanField()
    unavailable = serializers.CharField(source="why", allow_blank=True)
    seen_at = serializers.DateTimeField(allow_null=True)


class AdminNodesPage(shapes.ApiShape):
    """Nodes in the order in which they came, and the address of the next ones."""

    nodes = AdminNodeShape(many=True)
    next = serializers.CharField(allow_null=True)


class AdminWholeNodeShape(AdminNodeShape):
    """A node with the jobs that use it."""

    jobs = JobNameShape(many=True)


class NodeStateShape(shapes.ApiShape):
    """A decision about a node; all but `schedulable` need a reason, which owners of jobs read.

    `empty_by` is for `draining` alone.
    """

    state = serializers.ChoiceField([state.value for state in DECIDED])
    reason = shapes.TextField(max_length=LONGEST_REASON, allow_blank=True, default="")
    empty_by = serializers.DateTimeField(allow_null=True, default=None)

    def validate(self, attrs: Any) -> Any:
        """Refuse a drain without a reason, and a deadline that is over."""
        problems = {}
        if attrs["state"] != NodeState.SCHEDULABLE and not attrs["reason"].strip():
            problems["reason"] = _("Required.")
        if attrs["empty_by"] is not None and attrs["state"] != NodeState.DRAINING:
            problems["empty_by"] = _("Only a draining node has a deadline.")
        elif attrs["empty_by"] is not None and attrs["empty_by"] <= timezone.now():
            problems["empty_by"] = _("This time is in the past.")
        if problems:
            raise ValidationError(problems)
        return attrs


class AdminNodes(AdminView):
    """The nodes of all clusters."""

    @extend_schema(
        operation_id="admin_nodes_list",
        parameters=[AFTER, LIMIT, OpenApiParameter("cluster", str), OpenApiParameter("state", str)],
        responses={200: AdminNodesPage, **REFUSED},
    )
    def get(self, request: Request) -> Response:
        """List them by keys."""
        rows = Node.objects.select_related("cluster").defer("gpu_list").order_by("pk")
        if cluster := request.query_params.get("cluster"):
            rows = rows.filter(cluster__slug=cluster)
        if state := request.query_params.get("state"):
            rows = rows.filter(state=state)
        if after := self.number("after", 0):
            rows = rows.filter(pk__gt=after)
        found, following = self.page(rows, PAGE)
        return Response({"nodes": [AdminNodeShape.render(row) for row in found], "next": following})


class OneNode(AdminView):
    """One node."""

    @extend_schema(operation_id="admin_nodes_read", responses={200: AdminWholeNodeShape, **ABSENT})
    def get(self, request: Request, cluster: str, name: str) -> Response:
        """Return it with the jobs that a drain concerns."""
        return Response(_render(_find(cluster, name)))


class OneNodeState(AdminView):
    """The decision about a node."""

    @extend_schema(
        operation_id="admin_nodes_state",
        request=NodeStateShape,
        responses={200: AdminWholeNodeShape, **CHANGED},
    )
    def put(self, request: Request, cluster: str, name: str) -> Response:
        """Cordon, drain or uncordon it; running jobs go on until `empty_by`, where there is one."""
        values = NodeStateShape.parse(request.data)
        node, state = _find(cluster, name), NodeState(values["state"])
        actor = self.actor(values["reason"].strip())
        with transaction.atomic():
            action_record.write_down(actor, AdminAction.Kind.NODES, node.name, state=state.value)
            inventory.decide(
                Node.objects.filter(pk=node.pk),
                state,
                by=actor.user,
                why=actor.why,
                empty_by=values["empty_by"],
            )
        return Response(_render(_find(cluster, name)))


def _find(cluster: str, name: str) -> Node:
    row = Node.objects.select_related("cluster").filter(cluster__slug=cluster, name=name).first()
    if row is None:
        raise Http404
    return row


def _render(node: Node) -> dict[str, Any]:
    jobs = [JobNameShape.render(job) for job in admin_actions.find_jobs_on(node)]
    return AdminWholeNodeShape.render(node, jobs=jobs)
