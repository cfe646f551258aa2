"""`search`: full-text search over the folder of documents."""
