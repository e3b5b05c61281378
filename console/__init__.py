"""The composition root: settings, URLs, processes and site pages. Nothing imports it."""
