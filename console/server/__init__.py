"""The web server: TLS, listeners, HTTP and Django's handler."""
