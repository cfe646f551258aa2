"""Model providers: one module each, found by the part of a model's name before the colon."""
