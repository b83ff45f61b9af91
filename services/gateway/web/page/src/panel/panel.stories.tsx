/** The states of the tabs of the panel in the component story format, each with what must hold in it. */
import { type ComponentType } from "react";
import { expect } from "vitest";
import AgentsTab from "../agents/tab.tsx";
import { queryClient } from "../api/queries.ts";
import type { Chat } from "../api/types.ts";
import WorkspaceServers from "../mcp/workspace/tab.tsx";
import { settled } from "../testing/canvas.tsx";
import { broken, serve, serveNothingYet } from "../testing/server.ts";
import { button, type Story } from "../testing/stories.tsx";
import Debug from "../turns/debug.tsx";
import Changes from "./changes.tsx";
import Checkpoints from "./files/checkpoints.tsx";
import Files from "./files/files.tsx";
import type { TabProps } from "./panel.tsx";
import Processes from "./processes/processes.tsx";
import Terminals from "./processes/terminals.tsx";
import Summary from "./summary.tsx";
import WorkspaceTab from "./workspace/workspace.tsx";

const CHAT = {
  id: "c1", root_chat_id: "c1", owner_id: "u1", status: "waiting", title: "Tides", archived: false, workspace_id: "w1", child_count: 1,
  diff_status: null, summary: null, last_turn_summary: null, last_error: null, retry: null, versions: { snapshot: 1 },
} as unknown as Chat;

const ME = { "/api/v1/me": { id: "u1", login: "ada", display_name: "Ada", role: "member" } };

const OF_WORKSPACE: Record<string, ComponentType<TabProps>> = { Changes, Files, Processes, Terminals, Checkpoints, Servers: WorkspaceServers };
const ALL: Record<string, ComponentType<TabProps>> = { ...OF_WORKSPACE, Agents: AgentsTab, Workspace: WorkspaceTab, Summary, Debug };

function each(tabs: Record<string, ComponentType<TabProps>>): Story["render"] {
  return () => Object.entries(tabs).map(([name, Tab]) => <section key={name} data-tab={name}><Tab chat={CHAT} /></section>);
}

function tab(canvas: HTMLElement, name: string): HTMLElement {
  return canvas.querySelector<HTMLElement>(`[data-tab=${name}]`)!;
}

/** Each tab keeps its place while it is read. */
export const Loading: Story = {
  before: serveNothingYet,
  render: each(ALL),
  async play(canvas) {
    for (const name of Object.keys(ALL)) expect(tab(canvas, name).querySelector(".skeleton"), name).not.toBeNull();
  },
};

const DAYS = { created_at: "2026-11-01T12:00:00Z", archives_at: "2026-12-01T12:00:00Z", purges_at: null };
const USAGE = { root_chat_id: "c1", own_cost_micros: null, totals: { cost_micros: 0, priced_calls: 0, unpriced_calls: 0, input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, estimated_calls: 0 } };

/** The summary says what the chat is about, its model, and when it goes. */
export const Summarised: Story = {
  before: () => serve({ ...ME, "/api/v1/models": { items: [{ id: "m1", name: "large", display_name: "Large" }] }, "/api/v1/chats/c1/usage": USAGE }),
  render: () => <Summary chat={{ ...CHAT, ...DAYS, summary: "About tides.", model_id: "m1" } as Chat} />,
  async play(canvas) {
    await settled(() => expect(canvas.querySelector("dd")?.textContent).toBe("Large"));
    expect(canvas.textContent).toContain("About tides.");
    expect(canvas.textContent).toContain("unless it is used");
    await settled(() => expect(canvas.textContent).toContain("Input tokens"));
  },
};

const WORKSPACE = {
  id: "w1", name: "tide", owner_id: "u1", state: "stopped", stop_reason: "autostop", failure: null, network: { access: "none", allowed_hosts: [] },
  limits: { memory_bytes: 1, pids: 1 }, usage: null, sandbox_level: null, ttl_ms: 0, ttl_source: null, is_ttl_fixed: false, deadline: null, root_path: "",
};

/** A stopped workspace says why, and which other chats work in it. */
export const StoppedWorkspace: Story = {
  before: () => serve({ "/api/v1/workspaces/w1": WORKSPACE, "/api/v1/chats": { items: [{ id: "c1", title: "Tides" }, { id: "c2", title: "Moons" }], next_cursor: null } }),
  render: () => <WorkspaceTab chat={CHAT} />,
  async play(canvas) {
    await settled(() => expect(canvas.textContent).toContain("its time was up"));
    await settled(() => expect([...canvas.querySelectorAll(".workspace-chats a")].map((each) => each.textContent)).toEqual(["Moons"]));
    expect(canvas.textContent).toContain("Log of its preparation");
  },
};

/** Answer for a workspace that could not be prepared at a start, with one line in the log of that start. */
function servedStart(epoch: number, text: string): void {
  const line = { type: "log_line", workspace_id: "w1", log_line: { sequence: 1, logged_at: null, stage: "setup", text } };
  serve({
    "/api/v1/workspaces/w1": { ...WORKSPACE, state: "failed", epoch },
    "/api/v1/workspaces/w1/events": new Response(`data: ${JSON.stringify(line)}\n\n`),
    "/api/v1/chats": { items: [], next_cursor: null },
  });
}

/** After another start the log is that of the new preparation. */
export const StartedAgain: Story = {
  before: () => servedStart(1, "first start"),
  render: () => <WorkspaceTab chat={CHAT} />,
  async play(canvas) {
    await settled(() => expect(canvas.textContent).toContain("first start"));
    servedStart(2, "second start");
    void queryClient.invalidateQueries({ queryKey: ["workspace", "w1"] });
    await settled(() => expect(canvas.textContent).toContain("second start"));
    expect(canvas.textContent).not.toContain("first start");
  },
};

/** A chat without a workspace says when it gets one, in every tab that shows it. */
export const NoWorkspace: Story = {
  before: () => serve(ME),
  render: each(OF_WORKSPACE),
  async play(canvas) {
    for (const name of Object.keys(OF_WORKSPACE)) {
      await settled(() => expect(tab(canvas, name).textContent, name).toContain("It gets one when the agent first needs one."));
    }
  },
};

/** What failed is said in words, and each tab is read again by itself. */
export const Failed: Story = {
  before: () => serve(ME, broken),
  render: each(ALL),
  async play(canvas, press) {
    for (const name of Object.keys(ALL)) {
      await settled(() => expect(tab(canvas, name).textContent, name).toContain("could not be read"));
      expect(tab(canvas, name).textContent, name).toContain("The database does not answer.");
    }
    serve(ME);
    await press(button(tab(canvas, "Changes"), "Retry")!);
    await settled(() => expect(tab(canvas, "Changes").textContent).toContain("This chat has no workspace yet."));
    expect(tab(canvas, "Files").textContent).toContain("could not be read");
  },
};
