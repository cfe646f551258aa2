"""The client: a library for programs that embed Sennit, and the `sennit` command."""
