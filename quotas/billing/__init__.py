"""Prices and costs of resources."""
