"""What the site pages' templates can do besides Django's own."""
