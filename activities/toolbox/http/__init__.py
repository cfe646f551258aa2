"""`http_get`, and the HTTP endpoints that an operator declares as tools."""
