"""The form on the New job page: its sections, each with a view-model and a template of its own."""
