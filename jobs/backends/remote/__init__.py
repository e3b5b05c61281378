"""Shared by backends whose replicas run on other machines: attempt folders, sessions, the node relay."""
