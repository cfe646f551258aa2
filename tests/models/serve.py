"""The process of a llama.cpp server: `serve.py GGUF PORT CONTEXT`, with what `llama.installed` gives on PYTHONPATH.

It has two slots, each with half of the context, and writes what is most likely.
"""

import os
import sys
import time
from pathlib import Path

import xllamacpp  # type: ignore[import-not-found]


def main() -> None:
    """Serve until killed."""
    weights, port, context = sys.argv[1:]
    params = xllamacpp.CommonParams()
    params.model.path, params.model_alias = weights, ["smollm2"]
    params.hostnames, params.port = ["127.0.0.1"], int(port)
    params.n_ctx, params.n_parallel = int(context), 2
    params.use_jinja, params.chat_template = True, Path(__file__).with_name("chat.jinja").read_text()
    params.sampling.temp, params.endpoint_slots = 0.0, True
    # Threads wait for each other in loops: more than there are free cores make it slower by far.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 1) // 2)
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    while True:
        time.sleep(60)


main()
