"""Checks before a job is submitted: problems, notes, feasibility, a preview and suggested actions."""
