// @vitest-environment happy-dom
import { beforeEach, expect, test } from "vitest";
import { queryClient } from "../api/queries.ts";
import type { ToolCallPart, ToolResultPart } from "../api/types.ts";
import type { Standing } from "../cards/outcome.ts";
import { newCanvas } from "../testing/canvas.tsx";
import { McpCard } from "./tool-card.tsx";

const canvas = newCanvas();
const PIXEL = "R0lGODlhAQABAAAAACw=";

beforeEach(() => {
  queryClient.setQueryData(["mcp", "servers"], { items: [{ id: "s1", slug: "house", display_name: "The House" }], next_cursor: null });
});

async function show(standing: Standing, result: object): Promise<void> {
  const call = { tool_call_id: "c1", tool_name: "house__paint_the_hall", mcp_server_id: "s1", args: { where: { room: "hall", walls: [1, 2] } } };
  await canvas.show(<McpCard call={call as unknown as ToolCallPart} result={result as ToolResultPart} standing={standing} />);
}

async function open(): Promise<void> {
  await canvas.press(canvas.element.querySelector(".card-head[aria-expanded=false]")!);
}

test("a running call shows its server and how far it is", async () => {
  await show("running", { progress: { progress: 1, total: 4, message: "one\u202e wall" } });
  const bar = canvas.element.querySelector("progress")!;
  expect([bar.max, bar.value]).toEqual([4, 1]);
  expect(canvas.element.querySelector(".card-label")?.textContent).toBe("Paint the hall The House");
  expect(canvas.element.querySelector(".card-facts")?.textContent).toContain("oneU+202E wall");
  await show("running", { progress: { progress: 3 } });
  expect(canvas.element.querySelector("progress")).toBeNull();
  expect(canvas.element.querySelector(".card-facts")?.textContent).toContain("3");
  await show("done", { outcome: "done", result: { content: [] }, progress: { progress: 4, total: 4 } });
  expect(canvas.element.querySelector(".card-facts")).toBeNull();
});

test("the parts of a result keep their order, and JSON is a tree that opens and closes", async () => {
  const content = [
    { type: "text", text: "before" },
    { type: "image", media_type: "image/gif", data: PIXEL },
    { type: "structured", data: { colours: [{ name: "red" }], "<b>": true } },
    { type: "text", text: '{"inside": {"a": [1]}}' },
    { type: "text", text: "{no JSON" },
  ];
  await show("done", { outcome: "done", result: { content } });
  const parts = [...canvas.element.querySelectorAll(".mcp-part")];
  expect(parts.map((each) => (each.querySelector("img") ? "picture" : each.querySelector(".json-branch") ? "tree" : each.textContent))).toEqual([
    "before",
    "picture",
    "tree",
    "tree",
    "{no JSON",
  ]);
  const summaries = [...parts[2]!.querySelectorAll("summary")].map((each) => each.textContent);
  expect(summaries).toEqual(["{2}", "colours: [1]", "0: {1}"]);
  expect([...parts[2]!.querySelectorAll(".json-leaf")].map((each) => each.textContent)).toEqual(['name: "red"', "<b>: true"]);
  // The first levels are open, and what is deeper is opened by a person.
  expect([...parts[2]!.querySelectorAll("details")].map((each) => each.open)).toEqual([true, true, false]);
});

test("the arguments are a tree, and a long list shows its beginning", async () => {
  const long = Array.from({ length: 250 }, (_, index) => index);
  await show("done", { outcome: "done", result: { content: [{ type: "structured", data: long }] } });
  await open();
  expect(canvas.element.querySelector(".json-branch")?.textContent).toContain('room: "hall"');
  const tree = canvas.element.querySelector(".mcp-part .json-entries")!;
  expect([tree.querySelectorAll(".json-leaf").length, tree.querySelector("p")?.textContent]).toEqual([200, "50 more"]);
});

test("a call of which it is not known whether it ran says so", async () => {
  await show("unknown", { outcome: "unknown", result: {} });
  await open();
  expect(canvas.element.textContent).toContain("It is not known whether this call ran.");
});
