"""Backends: the engines that run jobs, and the registry that finds them."""
