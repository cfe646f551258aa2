"""Write code several times, test each in the sandbox, keep the best.

Source: CodeMonkeys, "Scaling Test-Time Compute for Software Engineering" (2025).
Shape: attempts side by side, each a loop of writing and testing; then a judge among those that pass.
Guarantees: the answer has passed the tests, or a person has given it. Tests run without network and files of yours.
Cost: at most `attempts` times three model calls and three runs of the tests, and one call of the judge.
"""


async def attempt(problem: str, tests: str, number: int) -> dict:
    code, report = "", ""
    for _ in range(3):
        prompt = f"Attempt {number}: write the Python module `solution`. Reply with its code alone."
        code = await llm(prompt, problem, code, report)
        done = await python(code=tests, files={"solution.py": code})
        if done["exit_code"] == 0:
            return {"code": code, "passed": True}
        report = done["stderr"]
    return {"code": code, "passed": False}


async def main(problem: str, tests: str, attempts: int = 4) -> str:
    found = await parallel([task(attempt, problem=problem, tests=tests, number=n) for n in range(1, attempts + 1)])
    good = [each["code"] for each in found if each["passed"]]
    if not good:
        return await ask("No attempt passes the tests. Send the code to go on with.", problem, found[0]["code"])
    if len(good) == 1:
        return good[0]
    best = await llm("Which is the clearest? Count from 1.", problem, good, schema=int, role="judge")
    return good[min(max(best, 1), len(good)) - 1]
