"""What is misconfigured: Django's system checks, and what `doctor` finds before the first start."""
