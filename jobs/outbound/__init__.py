"""Requests to addresses that people give."""
