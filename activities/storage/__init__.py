"""What is kept outside Temporal: artifacts, the context of a run; and how secrets are kept out."""
