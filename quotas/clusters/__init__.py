"""Clusters: their nodes, GPU types and encrypted settings."""
