"""Agents change one folder in branches of their own; the first whose tests pass wins.

Source: Agentless, "Demystifying LLM-based Software Engineering Agents" (2024).
Shape: each branch is an agent in the folder as you gave it, and then the tests; `first` takes the first that passes.
Guarantees: no branch sees another one, and your folder stays as it is: the answer is a patch that has passed the tests.
The agents run code without network. The losers are cancelled at once. If nobody wins, the run waits for you.
Cost: up to 40 calls of a model a branch; the time is that of the fastest good branch.
"""

WAYS = (
    "Make the smallest change that works.",
    "Read the tests first, and then what they call.",
    "Write a test that shows the fault before you mend it.",
    "Look for the same fault in other places, and mend all of them.",
    "Find out when it last worked, by its parts.",
    "Write the part that is at fault anew.",
    "Say what the code assumes, and check each of it.",
    "Begin at the error, and go back from there.",
)


async def branch(repo: dict, goal: str, tests: str, way: str) -> str:
    order = f"Work in the folder with your tools until this command succeeds: {tests}\n{way}\n{goal}"
    done = await agent(order, tools=["python", "shell"], workspace=repo)
    tested = await shell(command=tests, workspace=done["workspace"], timeout_s=120)
    if tested["exit_code"] != 0:
        raise ValueError(f"the tests fail: {(tested['stderr'] or tested['stdout'])[-300:]}")
    return (await diff(workspace=done["workspace"], base=repo))["diff"]


async def main(repo: dict, goal: str, tests: str = "make test", branches: int = 8) -> str:
    return await first([task(branch, repo=repo, goal=goal, tests=tests, way=way) for way in WAYS[:branches]])
