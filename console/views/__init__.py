"""The pages of the site itself: home, signing in, settings, search, errors."""
