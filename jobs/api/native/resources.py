"""Quotas and nodes over the native API: targets of jobs, and their use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from jobs import submission
from jobs.api.native import shapes
from jobs.api.native.base import REFUSED, NativeView
from jobs.api.native.sparse_fields import FIELDS, Sparse
from jobs.api.native.versions import IF_NONE_MATCH
from jobs.models import Attempt, Job
from quotas.ledger import reports


class ResourceUseShape(shapes.ApiShape):
    """One resource of a quota: `used` runs, `reserved` is for jobs that start; `limit` null is none."""

    kind = serializers.CharField(help_text="gpu, a type of GPU, cpu_milli or memory_mib")
    used = serializers.IntegerField()
    reserved = serializers.IntegerField()
    borrowed = serializers.IntegerField()
    limit = serializers.IntegerField(allow_null=True)
    free = serializers.IntegerField(allow_null=True)


class QuotaShape(shapes.ApiShape):
    """A quota of one of the caller's workspaces; a submission names it by `target` or its three parts."""

    target = serializers.CharField(help_text="WORKSPACE/CLUSTER/QUOTA")
    workspace = serializers.CharField(source="quota.workspace.slug")
    cluster = serializers.CharField(source="quota.cluster.slug")
    quota = serializers.CharField(source="quota.slug")
    name = serializers.CharField(source="quota.title")
    may_submit = serializers.BooleanField()
    jobs = serializers.IntegerField(source="holders", help_text="that hold something of it")
    resources = ResourceUseShape(many=True, source="bars")


class QuotasShape(shapes.ApiShape):
    """Quotas of the caller's workspaces."""

    quotas = QuotaShape(many=True)


class HoldingShape(shapes.ApiShape):
    """What a job holds on a node; `job` is null where the caller may not see it."""

    job = serializers.CharField(allow_null=True)
    gpus = serializers.DictField(child=serializers.IntegerField(), source="amounts.gpus")
    cpu_milli = serializers.IntegerField(source="amounts.cpu_milli")
    memory_mib = serializers.IntegerField(source="amounts.memory_mib")
    until = serializers.DateTimeField(allow_null=True, help_text="the latest end, if there is one")


class NodeShape(shapes.ApiShape):
    """A node, and what jobs hold on it."""

    cluster = serializers.CharField()
    name = serializers.CharField(source="node.name")
    state = serializers.CharField(source="node.state")
    gpus = serializers.DictField(child=serializers.IntegerField(), source="node.gpus")
    cpu_milli = serializers.IntegerField(source="node.cpu_milli")
    memory_mib = serializers.IntegerField(source="node.memory_mib")
    holdings = HoldingShape(many=True)


class NodesShape(shapes.ApiShape):
    """Nodes of the clusters that the caller's workspaces may use."""

    nodes = NodeShape(many=True)


class Quotas(NativeView):
    """Quotas of the caller's workspaces."""

    sparse = Sparse(QuotaShape, "quotas")

    @extend_schema(
        operation_id="quotas_list",
        parameters=[FIELDS, IF_NONE_MATCH],
        responses={200: QuotasShape, 304: None, **REFUSED},
    )
    def get(self, request: Request) -> Response:
        """List them with their use, and whether the caller may submit there."""
        open_ones = set(submission.quotas_open_to(self.person).values_list("pk", flat=True))
        rows = [
            QuotaShape.render(
                use,
                target=submission.target_address(use.quota),
                may_submit=use.quota.pk in open_ones,
                resources=[ResourceUseShape.render(bar) for bar in use.bars],
            )
            for use in reports.quotas_of(self.person)
        ]
        return Response({"quotas": rows})


class Nodes(NativeView):
    """Nodes of the clusters that the caller's workspaces may use."""

    sparse = Sparse(NodeShape, "nodes")

    @extend_schema(
        operation_id="nodes_list",
        parameters=[OpenApiParameter("cluster", str), FIELDS, IF_NONE_MATCH],
        responses={200: NodesShape, 304: None, **REFUSED},
    )
    def get(self, request: Request) -> Response:
        """List them with what is held on each."""
        wanted = request.query_params.get("cluster")
        clusters = {
            each.pk: each for each in reports.clusters_of(self.person) if wanted in (None, "", each.slug)
        }
        uses = reports.nodes_of(clusters.values())
        known = self._find_jobs({holding.holder for use in uses for holding in use.holdings})
        return Response({"nodes": [_render(use, clusters[use.node.cluster_id].slug, known) for use in uses]})

    def _find_jobs(self, holders: set[str]) -> Mapping[str, str]:
        """Return the ids of the holders' jobs that the caller may see."""
        visible = Job.objects.visible_to(self.person)
        rows = Attempt.objects.filter(key__in=holders, job__in=visible)
        return dict(rows.values_list("key", "job__public_id"))


def _render(use: reports.NodeUse, cluster: str, known: Mapping[str, str]) -> dict[str, Any]:
    holdings = [HoldingShape.render(each, job=known.get(each.holder)) for each in use.holdings]
    return NodeShape.render(use, cluster=cluster, holdings=holdings)
