"""Tools of MCP servers (Model Context Protocol), through the official package, which
the extra `mcp` brings.
"""
