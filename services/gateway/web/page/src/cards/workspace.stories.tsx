/** The cards of workspaces and of attached files in the component story format, each with what must hold in it. */
import type { ReactNode } from "react";
import { expect } from "vitest";
import type { ToolCallPart, ToolResultPart } from "../api/types.ts";
import type { Story } from "../testing/stories.tsx";
import type { Standing } from "./outcome.ts";
import { ToolCard } from "./tool-card.tsx";

const MADE = { ok: true, workspace_id: "w1", workspace_name: "tide-1", state: "ready", build_id: "w1-1", directory: "/srv/tide", git_branch: "main" };

function card(tool: string, standing: Standing, args: object, told: object | null): ReactNode {
  const call = { type: "tool-call", tool_call_id: "call_1", tool_name: tool, args };
  const result = told && { type: "tool-result", tool_call_id: "call_1", tool_name: tool, outcome: standing, result: told };
  return <ToolCard key={tool} chatId="c1" call={call as unknown as ToolCallPart} result={result as unknown as ToolResultPart | null} standing={standing} />;
}

const labels = (canvas: HTMLElement): (string | null)[] => [...canvas.querySelectorAll(".card-label")].map((each) => each.textContent);
const body = (canvas: HTMLElement): string => canvas.querySelector(".card-body")?.textContent ?? "";

/** Each call says what it does to which workspace, before and after it has an answer. */
export const NamedWorkspaces: Story = {
  render: () => [
    card("create_workspace", "running", { template_id: "t1", name: "tide" }, null),
    card("start_workspace", "done", {}, { ...MADE, started: true }),
    card("stop_workspace", "done", {}, { ...MADE, stopped: true, state: "stopped" }),
  ],
  async play(canvas) {
    expect(labels(canvas)).toEqual(["Create workspace tide", "Start workspace tide-1", "Stop workspace tide-1"]);
  },
};

/** A workspace that was made shows where it works. */
export const CreatedWorkspace: Story = {
  render: () => card("create_workspace", "done", { template_id: "t1" }, { ...MADE, created: true, next_step: "The workspace is ready: all tools work there now." }),
  async play(canvas, press) {
    expect(body(canvas)).toBe("");
    await press(canvas.querySelector(".card-head")!);
    expect([...canvas.querySelectorAll("dl > div")].map((each) => each.textContent)).toEqual(["Directory/srv/tide", "Branchmain"]);
  },
};

/** A workspace that was there, or that ran already, is told apart from one that was made. */
export const NothingToDo: Story = {
  render: () => [
    card("create_workspace", "done", {}, { ...MADE, created: false, already_exists: true }),
    card("start_workspace", "done", {}, { ...MADE, started: false, no_build: true }),
    card("stop_workspace", "done", {}, { ...MADE, stopped: true, no_build: true }),
  ],
  async play(canvas, press) {
    for (const head of canvas.querySelectorAll(".card-head")) await press(head);
    expect([...canvas.querySelectorAll(".card-note")].map((each) => each.textContent)).toEqual([
      "The chat had this workspace already.",
      "It ran already.",
      "It did not run.",
    ]);
  },
};

/** A workspace that could not be made says why, what helps, and the end of its log. */
export const FailedWorkspace: Story = {
  render: () =>
    card("create_workspace", "failed", { template_id: "t1" }, {
      ...MADE, ok: false, state: "failed", error: "The repository could not be cloned.", reason: "WORKSPACE_CLONE", hint: "Read the log.", log: ["git clone", "fatal: no such host"],
    }),
  async play(canvas) {
    expect(canvas.querySelector(".card-problem")?.textContent).toBe("The repository could not be cloned. Read the log.");
    expect(canvas.querySelector(".terminal-output")?.textContent).toContain("git clone\nfatal: no such host");
    expect(body(canvas)).not.toContain("WORKSPACE_CLONE");
  },
};

/** A chat without a workspace has none to name. */
export const NoWorkspace: Story = {
  render: () => card("stop_workspace", "failed", {}, { ok: false, stopped: false, error: "This chat has no workspace.", reason: "NO_WORKSPACE", hint: "Call list_templates." }),
  async play(canvas) {
    expect([labels(canvas), body(canvas)]).toEqual([["Stop workspace "], "This chat has no workspace. Call list_templates."]);
  },
};

/** An attached file is downloaded from its card, under its name. */
export const AttachedFile: Story = {
  render: () => card("attach_file", "done", { path: "out/tides.csv" }, { ok: true, path: "out/tides.csv", file_id: "f1", name: "tides.csv", media_type: "text/csv", size_bytes: 2048 }),
  async play(canvas) {
    const link = canvas.querySelector<HTMLAnchorElement>(".card-body a")!;
    expect([labels(canvas), link.textContent]).toEqual([["Attach out/tides.csv"], "Download tides.csv 2 KiB"]);
    expect([link.getAttribute("href"), link.getAttribute("download")]).toEqual(["/api/v1/files/f1", "tides.csv"]);
  },
};

/** A file that could not be attached has the reason, and nothing to download. */
export const FailedAttachment: Story = {
  render: () => card("attach_file", "failed", { path: "out/x" }, { ok: false, error: "The file is larger than 10 MiB.", reason: "FILE_TOO_LARGE", hint: "Attach a part of it." }),
  async play(canvas) {
    expect([body(canvas), canvas.querySelector("a")]).toEqual(["The file is larger than 10 MiB. Attach a part of it.", null]);
  },
};
