"""Who may use what, and how much of it."""
