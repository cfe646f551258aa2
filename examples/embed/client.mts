// Starts a run, answers its question and prints the answer, from TypeScript with plain JSON.
//
// npm install @temporalio/client typescript @types/node
// npx tsc --module nodenext --target es2023 --skipLibCheck client.mts
// node client.mjs 127.0.0.1:7233

import { Client, Connection } from "@temporalio/client";

type Report = { status: string; answer: unknown; problem?: string };
type View = { status: string; blocked: { node: string; update: string; question: string }[] };

const connection = await Connection.connect({ address: process.argv[2] });
const client = new Client({ connection });
const run = await client.workflow.start("AgentRun", {
  taskQueue: "sennit.workflow",
  workflowId: `typescript-${process.pid}-${Date.now()}`,
  args: [{ plan: { nodes: [{ id: "ok", kind: "gate", question: "Go on?", schema: { enum: ["yes", "no"] } }] } }],
});

let asked = false;
while (!asked) {
  await new Promise((wake) => setTimeout(wake, 300));
  const view = await run.query<View, [object]>("plan", {});
  asked = view.blocked.length > 0;
  for (const item of view.blocked) console.log(`${item.node}: ${item.question}`);
}
console.log(await run.executeUpdate<string, [object]>("answer", { args: [{ node: "ok", value: "yes" }] }));
const report = (await run.result()) as Report;
console.log(`${report.status}: ${JSON.stringify(report.answer)}`);
await connection.close();
