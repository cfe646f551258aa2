"""What Weft costs, measured on the machine it runs on: `python -m benchmarks`."""
