"""site.yaml: workspaces, members, quotas, nodes, GPU types, specs and prices as one file, to keep in git."""
