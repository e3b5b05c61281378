"""Django admin of people, workspaces, clusters and quotas: each module registers its own."""

from quotas.admin import clusters, house, ledger, limits, nodes, people, prices, trail

__all__ = ["clusters", "house", "ledger", "limits", "nodes", "people", "prices", "trail"]
