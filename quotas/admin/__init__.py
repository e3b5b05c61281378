"""Django admin of people, workspaces, clusters and quotas: each module registers its own."""

from quotas.admin import announcements, audit_log, clusters, ledger, limits, people, prices

__all__ = ["announcements", "audit_log", "clusters", "ledger", "limits", "people", "prices"]
