"""`sennit serve`: let other agents start runs and read them, over the Model Context Protocol
or as an agent of A2A.
"""

import argparse
import asyncio
from pathlib import Path

from sennit.starter.client.client import Sennit
from sennit.starter.client.connection import configured_server, person
from sennit.starter.client.errors import Exit, Refused
from sennit.starter.client.request import docs_folder
from sennit.starter.commands.command_line import Parser
from sennit.starter.commands.launch import add_run_arguments, connect, run_options
from sennit.starter.dev.stack import Renew
from sennit.starter.serve.run_service import RunService, Terms
from sennit.starter.terminal.console import Terminal

EXAMPLES = """\
sennit serve --mcp --docs notes --budget tokens=200000
sennit serve --a2a --http 0.0.0.0:8766 --name sennit.example.com --tokens tokens.toml"""


def add_arguments(parser: Parser) -> None:
    parser.describe("--mcp | --a2a", EXAMPLES)
    add = parser.add_argument
    protocol = parser.add_mutually_exclusive_group(required=True)
    protocol.add_argument(
        "--mcp", action="store_true", help="speak the Model Context Protocol, on stdin and stdout"
    )
    protocol.add_argument(
        "--a2a", action="store_true", help="be an agent of the A2A protocol; needs --http"
    )
    http_help = (
        "listen here for streamable HTTP instead; elsewhere than on loopback it needs --tokens "
        "and --name"
    )
    add("--http", metavar="[HOST:]PORT", help=http_help)
    add(
        "--name",
        action="append",
        default=[],
        metavar="HOST",
        help="a host name by which clients call it; repeatable",
    )
    add(
        "--tokens",
        type=Path,
        metavar="FILE",
        help='bearer tokens: TOML lines ann = "TOKEN"; a caller has its own runs',
    )
    add(
        "--all-runs",
        action="store_true",
        help="let every caller reach all runs of the namespace, not only its own",
    )
    trust_help = (
        "take the answer to an elicitation as a person's word: only if you trust the client to "
        "ask a person"
    )
    add("--trust-elicitation", action="store_true", help=trust_help)
    add_run_arguments(parser, replans=True, docs=True)


async def run(args: argparse.Namespace, terminal: Terminal) -> Exit:
    """Serve until the client closes stdin, or over HTTP until the process is told to end.
    Runs do not end with it.
    """
    try:
        if args.a2a:
            from sennit.starter.serve import a2a_server
        from sennit.starter.serve.http_server import Listen, serve_a2a, serve_http
        from sennit.starter.serve.mcp_server import mcp_server
        from sennit.starter.serve.tokens import read_tokens
    except ModuleNotFoundError as missing:
        extra = "a2a" if args.a2a else "mcp"
        raise Refused(
            f"serve --{extra} needs sennit[{extra}]; {missing.name} is not installed"
        ) from None

    # Refuse everything that is wrong before anybody is served.
    if args.a2a and args.http is None:
        raise Refused("--a2a: say where to listen: --http 8766")
    if args.a2a and args.trust_elicitation:
        raise Refused("--trust-elicitation is for --mcp: A2A has no elicitation")
    if args.http is None and (args.tokens or args.name):
        raise Refused(
            "--tokens and --name are for --http: on stdin and stdout there is one client, which "
            "is yours"
        )
    listen = None
    if args.http is not None:
        listen = Listen.of(args.http, args.name)
    if listen is not None and not listen.is_loopback and args.tokens is None:
        raise Refused(
            f"--http {args.http}: elsewhere than on loopback clients need a token: --tokens FILE"
        )
    tokens = None
    if args.tokens:
        tokens = read_tokens(args.tokens)
    server = configured_server(args.address, args.namespace)
    if args.docs:
        docs_folder(args.docs, must_exist=server is None or server.is_local)

    terms = Terms(
        options=run_options(args),
        docs=args.docs,
        flags=terminal.flags,
        has_tools=server is None,
        all_runs=args.all_runs,
    )
    service = RunService(_Connections(args, terminal).connect, terms)
    if args.a2a and listen is not None:
        await serve_a2a(
            lambda url: a2a_server.a2a_application(service, person(), url),
            listen,
            a2a_server.PATH,
            tokens,
            lambda url: terminal.notice(f"A2A at {url}"),
        )
        return Exit.ANSWER
    mcp = mcp_server(service, person(), tokens=tokens, trusts_elicitation=args.trust_elicitation)
    if listen is None:
        await mcp.run_stdio_async()
    else:
        await serve_http(mcp, listen, lambda url: terminal.notice(f"MCP at {url}"))
    return Exit.ANSWER


class _Connections:
    """The connection of a server, made anew where a command would: for a new run on the local
    stack, whose settings may have changed, and after that stack has stopped.
    """

    def __init__(self, args: argparse.Namespace, terminal: Terminal) -> None:
        self._args = args
        self._terminal = terminal
        self._lock = asyncio.Lock()
        self._sennit: Sennit | None = None

    async def connect(self, renew: Renew) -> Sennit:
        """Return a connection. Raises Refused or ServerUnreachable."""
        async with self._lock:
            is_configured = configured_server(self._args.address, self._args.namespace) is not None
            is_enough = is_configured or renew == "never"
            if self._sennit is None or not is_enough or self._sennit.server.stopped():
                self._sennit = await connect(self._args, self._terminal, renew=renew)
            return self._sennit
