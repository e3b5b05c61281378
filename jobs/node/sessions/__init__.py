"""Shells and programs that somebody runs beside a replica."""
