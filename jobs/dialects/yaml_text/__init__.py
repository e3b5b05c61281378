"""YAML as people bring it: values, places, changes that keep the rest, and a readable way of writing it."""
