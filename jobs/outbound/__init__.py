"""Requests of the console itself to addresses that people give: which it may contact, and how (SSRF)."""
