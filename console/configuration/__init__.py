"""Configuration of an installation, read before Django starts."""
