"""Ask every document the same question; read again with care where the answer is unsure; merge in a tree.

Source: "LLM x MapReduce: Simplified Long-Sequence Processing using Large Language Models" (2024).
Shape: a task for each file, which reads it once or twice; then merges of eight notes each.
Guarantees: only unsure documents cost a second call. An answer names the documents that it comes from.
Cost: one call a document, one more for each that is unsure, and one for each eight notes.
"""

from dataclasses import dataclass


@dataclass
class Note:
    answer: str
    confidence: float


async def note(question: str, path: str) -> dict:
    document = await read(path=path)
    text = document["text"]
    found = await llm("Answer from this document. How sure are you, from 0 to 1?", question, text, schema=Note)
    if found.confidence < 0.7:
        prompt = "Another reader was unsure. Read with care, and say `nothing` if the document has no answer."
        found = await llm(prompt, question, text, found.answer, schema=Note, role="judge")
    return {"path": path, "answer": found.answer}


async def merge(question: str, notes: list) -> dict:
    return {"answer": await llm("Merge these notes. Name the path behind each statement.", question, notes)}


async def main(question: str, glob: str = "rivers/*.md") -> str:
    files = await list_files(glob=glob, max_items=200)
    notes = await parallel([task(note, question=question, path=file["path"]) for file in files["items"]])
    for _ in range(3):  # 200 notes, 25, 4, 1
        if len(notes) < 2:
            break
        parts = [notes[start : start + 8] for start in range(0, len(notes), 8)]
        notes = await parallel([task(merge, question=question, notes=part) for part in parts])
    return notes[0]["answer"] if notes else f"no file matches {glob}"
