"""The native API of the console's administration: people, workspaces, quotas, nodes, windows, priorities."""
