/** The states of the cards of tools in the component story format, each with what must hold in it. */
import type { ReactNode } from "react";
import { expect } from "vitest";
import type { ToolCallPart, ToolResultPart } from "../api/types.ts";
import type { Story } from "../testing/stories.tsx";
import { type Standing, WORDS } from "./outcome.ts";
import { ToolCard } from "./tool-card.tsx";

const TOOLS = [
  ...["execute", "write_file", "edit_files", "apply_patch", "read_file", "list_files", "find_files", "search_files"],
  ...["process_output", "process_write", "process_signal", "process_list", "attach_file", "ask_user_question", "propose_plan"],
  ...["spawn_agent", "wait_agents", "message_agent", "interrupt_agent", "list_agents", "list_subagent_models", "advisor", "todo"],
  ...["create_workspace", "start_workspace", "stop_workspace", "list_templates", "read_template"],
  ...["never_seen_before"],
];
const STANDINGS = Object.keys(WORDS) as Standing[];

function card(tool: string, standing: Standing, args: object = {}, result: object | null = null): ReactNode {
  const call = { type: "tool-call", tool_call_id: "call_1", tool_name: tool, args };
  const isOver = standing === "done" || standing === "failed" || standing === "cancelled" || standing === "unknown";
  const told = isOver ? { type: "tool-result", tool_call_id: "call_1", tool_name: tool, outcome: standing, result: result ?? {} } : result;
  return (
    <ToolCard
      key={`${tool} ${standing}`}
      chatId="c1"
      call={call as unknown as ToolCallPart}
      result={told as unknown as ToolResultPart | null}
      standing={standing}
    />
  );
}

/** Every tool tells by words how a call stands; none of the six looks like another. */
export const EveryStanding: Story = {
  render: () => TOOLS.map((tool) => <section key={tool} data-tool={tool}>{STANDINGS.map((each) => card(tool, each))}</section>),
  async play(canvas) {
    for (const tool of TOOLS) {
      const heads = [...canvas.querySelectorAll(`[data-tool=${tool}] > .card`)];
      expect(heads.map((each) => each.className.replace(/^.*is-/, "")), tool).toEqual(STANDINGS);
      expect(heads.map((each, place) => each.querySelector(".card-head")?.textContent?.endsWith(WORDS[STANDINGS[place]!])), tool).not.toContain(false);
    }
  },
};

/** A tool that the page does not know shows its name, its arguments and its result. */
export const NeverSeenBefore: Story = {
  render: () => card("measure_tide", "done", { place: "Brest" }, { height_m: 4 }),
  async play(canvas, press) {
    expect(canvas.querySelector(".card-label")?.textContent).toBe("Measure tide");
    await press(canvas.querySelector(".card-head")!);
    expect(canvas.textContent).toContain("Brest");
    expect(canvas.textContent).toContain("height_m");
  },
};

/** Why a call failed is said in words; what else its result has is shown. */
export const FailedInWords: Story = {
  render: () => (
    <>
      {card("measure_tide", "failed", {}, { ok: false, error: "there is no tool measure_tide", reason: "NOT_RUN", hint: "Call one that is offered." })}
      {card("measure_wind", "failed", {}, { ok: false, error: "it is calm", height_m: 4 })}
    </>
  ),
  async play(canvas) {
    const [unknown, calm] = [...canvas.querySelectorAll(".card")].map((each) => each.textContent);
    expect(unknown).toContain("there is no tool measure_tide Call one that is offered.");
    expect(unknown).not.toContain("NOT_RUN");
    expect(calm).toContain("height_m");
  },
};

/** An edit that failed changed nothing, and says what is wrong with each file. */
export const NothingChanged: Story = {
  render: () => card("edit_files", "failed", { files: [{ path: "a" }, { path: "b" }] }, { problems: [{ error: "a: not found once" }, { error: "b: is a directory" }] }),
  async play(canvas) {
    const problems = [...canvas.querySelectorAll(".card-problem")].map((each) => each.textContent);
    expect(problems).toEqual(expect.arrayContaining(["Nothing was changed.", "a: not found once", "b: is a directory"]));
  },
};

/** Changes of several files are one difference for each of them. */
export const SeveralFiles: Story = {
  render: () => {
    const diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n";
    const files = ["x", "y"].map((path) => ({ path, change: "modified", added_lines: 1, deleted_lines: 1, diff }));
    return card("apply_patch", "done", {}, { files });
  },
  async play(canvas) {
    expect(canvas.querySelector(".card-label")?.textContent).toBe("Patch 2 files");
    expect([...canvas.querySelectorAll(".changed-file h4")].map((each) => each.textContent)).toEqual(["x modified", "y modified"]);
    expect(canvas.querySelector(".card-facts")?.textContent).toBe("+2−2");
  },
};

/** Arguments that are still being written show what can be read of them. */
export const BeingWritten: Story = {
  render: () => {
    const call = { type: "tool-call", tool_call_id: "call_1", tool_name: "write_file", args_delta: '{"path": "notes.txt", "content": "half a li' };
    return <ToolCard chatId="c1" call={call as unknown as ToolCallPart} result={null} standing="running" />;
  },
  async play(canvas) {
    expect(canvas.querySelector(".card-label")?.textContent).toBe("Write notes.txt");
  },
};

/** A summary is being made, is there, or could not be made. */
export const Summarised: Story = {
  render: () => [card("chat_summarized", "running"), card("chat_summarized", "done", { source: "manual" }, { summary: "Tides." }), card("chat_summarized", "failed")],
  async play(canvas) {
    const lines = [...canvas.querySelectorAll(".summary-rule")].map((each) => each.textContent);
    expect(lines).toEqual(["Summarizing…", "Summarized (on request)", "Could not summarize"]);
    expect(canvas.textContent).toContain("Above this line the model has a summary");
  },
};

/** Of a result that is too large the begin is shown, and how much there is more. */
export const TooLarge: Story = {
  render: () => card("measure_tide", "done", {}, { text: "x".repeat(200_000) }),
  async play(canvas, press) {
    await press(canvas.querySelector(".card-head")!);
    const shown = canvas.querySelector(".card-body")?.textContent ?? "";
    expect(shown.length).toBeLessThan(60_000);
    expect(shown).toMatch(/… 160.?\d{3} more characters/);
  },
};

/** Arguments that are no JSON are shown as they came. */
export const BrokenArguments: Story = {
  render: () => {
    const call = { type: "tool-call", tool_call_id: "call_1", tool_name: "measure_tide", args_delta: '{"place": "Bre' };
    const result = { type: "tool-result", tool_call_id: "call_1", outcome: "failed", result: { error: "The arguments are no JSON." } };
    return <ToolCard chatId="c1" call={call as unknown as ToolCallPart} result={result as unknown as ToolResultPart} standing="failed" />;
  },
  async play(canvas) {
    expect(canvas.querySelector(".card-body")?.textContent).toContain('{"place": "Bre');
    expect(canvas.querySelector(".card-problem")?.textContent?.trim()).toBe("The arguments are no JSON.");
  },
};
