"""The console's own API, `/api/console/v1/` (DESIGN section 11).

What it says is kept: fields are added, never renamed or taken away.
"""
