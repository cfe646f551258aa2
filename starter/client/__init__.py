"""The client library: connect, start runs, follow them, update them."""
