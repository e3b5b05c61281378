"""The form of the New job page: its sections, fields and hints."""
