"""The objects of an attempt: pure functions of its submission and the cluster's settings."""
