"""Lengths of time in tables."""

from __future__ import annotations

from django import template

register = template.Library()


@register.filter
def span(seconds: int) -> str:
    """Hours, minutes and seconds, as in 1:02:03."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
