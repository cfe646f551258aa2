"""The client: a library for programs that embed Weft, and the `weft` command."""
