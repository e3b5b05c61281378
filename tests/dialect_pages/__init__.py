"""docs/dialects: the field map, and what survives which conversion, made from the code."""
