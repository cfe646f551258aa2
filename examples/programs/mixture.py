"""Layers of answers, each written with the layer before in sight, and one that unites the last.

Source: "Mixture-of-Agents Enhances Large Language Model Capabilities" (2024).
Shape: `width` proposals a layer, `layers` layers, one aggregate. A layer sees all of the layer before.
Guarantees: a proposal that fails is left out; a layer needs two.
Cost: width times layers, and one call; the time of layers + 1 calls in a row.
"""


async def propose(goal: str, others: list, number: int) -> str:
    if not others:
        return await llm(f"Proposal {number}: answer.", goal)
    return await llm(f"Proposal {number}: answer better than these, from what is right in them.", goal, others)


async def main(goal: str, width: int = 4, layers: int = 2) -> str:
    proposals = []
    for layer in range(1, layers + 1):
        phase(f"layer {layer}")
        tickets = [task(propose, goal=goal, others=proposals, number=n) for n in range(1, width + 1)]
        ends = await settled(tickets)
        proposals = [end["value"] for end in ends if end["status"] == "succeeded"]
        if len(proposals) < 2:
            raise RuntimeError(f"layer {layer} has {len(proposals)} proposals of {width}")
    phase("aggregate")
    return await llm("Unite these answers into one. Leave out what most of them contradict.", goal, proposals)
