"""An agent as models write it: think, act, observe."""
import json


class Agent:
    def __init__(self, tools, most=6):
        self.tools = tools
        self.most = most
        self.history = []

    async def act(self, name, argument):
        tool = self.tools.get(name)
        if tool is None:
            return f"unknown tool {name}"
        try:
            return await tool(argument)
        except Exception as error:
            return f"{type(error).__name__}"

    async def run(self, goal):
        for turn in range(1, self.most + 1):
            reply = await llm(f"Turn {turn}. Goal: {goal}", self.history)
            try:
                action = json.loads(reply)
            except json.JSONDecodeError as error:
                self.history.append(f"not JSON at {error.pos}")
                continue
            if action["tool"] == "finish":
                return action["argument"]
            self.history.append(await self.act(action["tool"], action["argument"]))
        raise RuntimeError("out of turns")


async def main():
    async def find(query):
        return [item["title"] for item in (await search(query=query, k=2))["items"]]

    async def count(expression):
        return (await calculate(expression=expression))["value"]

    agent = Agent({"find": find, "count": count})
    return {"answer": await agent.run("ratio"), "history": agent.history}
