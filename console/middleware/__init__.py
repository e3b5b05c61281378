"""The console's own middleware, a module each; `MIDDLEWARE` of the settings has their order."""
