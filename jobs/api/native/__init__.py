"""The console's own API, `/api/console/v1/`.

It is stable: fields are added, never renamed or removed.
"""
