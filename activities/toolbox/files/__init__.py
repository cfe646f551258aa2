"""Tools for the folder of documents."""
