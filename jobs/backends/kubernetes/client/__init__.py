"""Requests to a Kubernetes apiserver: objects, watches, logs, processes in containers, and ports of pods."""
