"""Model calls of nodes: the call, its inputs, its reply, and which model serves it."""
