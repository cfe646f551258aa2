"""The tokens of two callers of `sennit serve`."""

ANN, BOB = "ann-" + "a" * 40, "bob-" + "b" * 40
