/** The states of a chat in the component story format, each with what must hold in it. */
import { expect } from "vitest";
import { settled } from "../testing/canvas.tsx";
import { absent, type Answer, broken, PENDING, serve, serveNothingYet } from "../testing/server.ts";
import { button, type Story } from "../testing/stories.tsx";
import { LiveRegion } from "../ui/announce.tsx";
import ChatScreen from "./screen.tsx";

const CHAT = {
  id: "c1", root_chat_id: "c1", parent_chat_id: null, owner_id: "u1", owner_name: "Ada", title: "Tides", status: "waiting", archived: false,
  last_error: null, retry: null, required_action: null, queue_length: 0, place_in_line: 0, model_id: null, reasoning_effort: null, mode: null,
  workspace_id: null, mcp_server_ids: [], uses_default_mcp_servers: true, labels: {}, pin_order: 0, summary: null, last_turn_summary: null,
  has_unread: false, shared: false, diff_status: null, instructions_drifted: false, children: [], child_count: 0, client_tools: [],
  fallback_model_id: null, break_glass_open: false, etag: null, versions: { snapshot: 1 },
};
const MESSAGES = [
  { id: 1, chat_id: "c1", role: "user", content: [{ type: "text", text: "When is low tide?" }], created_at: null },
  { id: 2, chat_id: "c1", role: "assistant", content: [{ type: "text", text: "At six." }], finish_reason: "stop", created_at: null },
];

/** Answer for a chat, whose stream stays open. */
function served(chat: object, others: Record<string, Answer> = {}): void {
  const page = { messages: MESSAGES, queued_messages: [], has_more: false, has_newer: false, cursor: "c" };
  serve({
    "/api/v1/me": { id: "u1", login: "ada", display_name: "Ada", role: "member" },
    "/api/v1/models": { items: [], next_cursor: null },
    "/api/v1/chats/c1": { ...CHAT, ...chat },
    "/api/v1/chats/c1/messages": page,
    "/api/v1/chats/c1/events": PENDING,
    ...others,
  });
}

const composer = (canvas: HTMLElement): Element | null => canvas.querySelector(".composer textarea");
const shows = (canvas: HTMLElement, text: string): Promise<void> => settled(() => expect(canvas.textContent).toContain(text));

/** Its place is kept by a skeleton, and there is nothing to write into yet. */
export const Loading: Story = {
  before: serveNothingYet,
  render: () => <ChatScreen chatId="c1" />,
  async play(canvas) {
    expect(canvas.querySelector(".skeleton")?.getAttribute("aria-label")).toBe("Loading messages");
    expect(composer(canvas)).toBeNull();
  },
};

/** One's own chat has its messages, and a composer. */
export const Own: Story = {
  before: () => served({}),
  render: () => <ChatScreen chatId="c1" />,
  async play(canvas) {
    await shows(canvas, "At six.");
    await settled(() => expect(composer(canvas)).not.toBeNull());
    expect(canvas.querySelector(".skeleton")).toBeNull();
    expect(canvas.querySelector("h1")?.textContent).toBe("Tides");
  },
};

/** A chat that is not there and one that is not shared look the same, and lead on. */
export const Absent: Story = {
  before: () => serve(),
  render: () => <ChatScreen chatId="c1" />,
  async play(canvas) {
    await shows(canvas, "This chat is not there");
    expect(canvas.querySelector("a[href='/']")?.textContent).toBe("Begin a new chat");
    expect(button(canvas, "Retry")).toBeUndefined();
  },
};

/** What failed is said in words, and is read again. */
export const Failed: Story = {
  before: () => serve({}, broken),
  render: () => <ChatScreen chatId="c1" />,
  async play(canvas, press) {
    await shows(canvas, "The chat could not be read");
    expect(canvas.textContent).toContain("The database does not answer.");
    served({});
    await press(button(canvas, "Retry")!);
    await shows(canvas, "At six.");
  },
};

/** What failed without a connection is read again once there is one. */
export const BackOnline: Story = {
  before: () => serve({}, () => new TypeError("Failed to fetch")),
  render: () => <ChatScreen chatId="c1" />,
  async play(canvas) {
    await shows(canvas, "Parley cannot be reached.");
    served({});
    dispatchEvent(new Event("online"));
    await shows(canvas, "At six.");
  },
};

/** An archived chat is read, and taken back; nothing is written into it. */
export const Archived: Story = {
  before: () => served({ archived: true }, { "/api/v1/chats/c1/unarchive": {} }),
  render: () => <ChatScreen chatId="c1" />,
  async play(canvas, press) {
    await shows(canvas, "This chat is archived.");
    expect([composer(canvas), canvas.querySelector(".badge")?.textContent]).toEqual([null, "archived"]);
    await press(button(canvas, "Take it back")!);
    await settled(() => expect(composer(canvas)).not.toBeNull());
  },
};

/** A chat of somebody else names its owner, and has neither composer nor menu. */
export const Shared: Story = {
  before: () => served({ owner_id: "u2", owner_name: "Grace", shared: true }),
  render: () => <ChatScreen chatId="c1" />,
  async play(canvas) {
    await shows(canvas, "Shared with you by Grace");
    expect(composer(canvas)).toBeNull();
    expect(button(canvas, "Edit and run again")).toBeUndefined();
  },
};

/** A chat that an administrator opened says until when, and that this is recorded. */
export const Opened: Story = {
  before: () => {
    const access = { id: "b1", administrator_id: "u1", user_id: "u2", is_open: true, reason: "A fault", expires_at: "2026-11-19T12:00:00Z", opened_at: null, ended_at: null };
    served({ owner_id: "u2", owner_name: "Grace", break_glass_open: true }, { "/api/v1/break-glass": { items: [access], next_cursor: null } });
  },
  render: () => <ChatScreen chatId="c1" />,
  async play(canvas) {
    const until = new Date("2026-11-19T12:00:00Z").toLocaleTimeString([], { timeStyle: "short" });
    await shows(canvas, `Break-glass until ${until}; recorded, and shown to Grace.`);
    expect([composer(canvas), canvas.textContent?.includes("Shared with you")]).toEqual([null, false]);
  },
};

/** A chat that is no longer shared while it is read keeps what was read, and says so. */
export const TakenAway: Story = {
  before: () => served({}, { "/api/v1/chats/c1/events": absent() }),
  render: () => <ChatScreen chatId="c1" />,
  async play(canvas) {
    await shows(canvas, "This chat is no longer followed");
    expect(canvas.textContent).toContain("At six.");
  },
};

/** Return a stream that tells these events and ends. */
function told(...events: object[]): Response {
  return new Response(events.map((each) => `data: ${JSON.stringify({ chat_id: "c1", ...each })}\n\n`).join(""));
}

function token(seq: number, text: string): object {
  return { type: "message_part", message_part: { role: "assistant", part: { type: "text", text }, history_version: 3, generation_attempt: 1, seq, part_index: 0 } };
}

/** Turns are announced when they begin and end; what is written meanwhile is shown and not said. */
export const Announced: Story = {
  before: () => served({ status: "running" }, { "/api/v1/chats/c1/events": told(token(1, "High "), token(2, "tide "), token(3, "at noon."), { type: "status", status: { status: "waiting", place_in_line: 0 } }) }),
  render: () => [<ChatScreen key="0" chatId="c1" />, <LiveRegion key="1" />],
  async play(canvas) {
    const said = (): string => canvas.querySelector("[role=status][aria-live=polite]")?.textContent ?? "";
    await settled(() => expect(said()).toContain("The agent has answered."));
    await shows(canvas, "High tide at noon.");
    expect(said()).not.toContain("tide");
    expect([...canvas.querySelectorAll(".timeline [aria-live]")].filter((each) => each.getAttribute("aria-live") !== "off")).toEqual([]);
  },
};
