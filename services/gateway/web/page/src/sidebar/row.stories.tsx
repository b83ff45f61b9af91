/** The states of a chat in the list in the component story format, each with what must hold in it. */
import { expect } from "vitest";
import type { Chat } from "../api/types.ts";
import { serve } from "../testing/server.ts";
import type { Story } from "../testing/stories.tsx";
import { ChatRow } from "./row.tsx";

const CHAT = {
  id: "c1", root_chat_id: "c1", parent_chat_id: null, owner_id: "u1", title: "Tides", status: "waiting", archived: false, pin_order: 0,
  child_count: 0, queue_length: 0, place_in_line: 0, has_unread: false, shared: false, diff_status: null, last_error: null,
  last_turn_summary: "Looked it up.", summary: "About tides.", updated_at: null, versions: { snapshot: 1 },
};

function row(chat: object, isMine = true): Pick<Story, "before" | "render"> {
  const shown = { ...CHAT, ...chat } as unknown as Chat;
  return { before: () => serve(), render: () => <ul><ChatRow chat={shown} isOpen={false} isMine={isMine} now={0} openId={null} /></ul> };
}

const line = (canvas: HTMLElement): string | null | undefined => canvas.querySelector(".chat-row-line")?.textContent;
const facts = (canvas: HTMLElement): string | null | undefined => canvas.querySelector(".chat-row-facts")?.textContent;

/** A chat at rest has the summary of its last turn. */
export const AtRest: Story = {
  ...row({}),
  async play(canvas) {
    expect([line(canvas), facts(canvas), canvas.querySelector(".chat-row-title")?.textContent]).toEqual(["Looked it up.", undefined, "Tides"]);
  },
};

/** An unread chat says so also to those who do not see its dot. */
export const Unread: Story = {
  ...row({ has_unread: true }),
  async play(canvas) {
    expect(canvas.querySelector(".chat-row.is-unread .visually-hidden")?.textContent).toContain("unread");
  },
};

/** A failed turn has its reason in place of the summary. */
export const Failed: Story = {
  ...row({ status: "error", last_error: { kind: "overloaded", message: "Too many requests at once." } }),
  async play(canvas) {
    expect([line(canvas), canvas.querySelector(".chat-row-line.is-bad") !== null]).toEqual(["Too many requests at once.", true]);
  },
};

/** A chat that asks something says so. */
export const Asks: Story = {
  ...row({ status: "requires_action" }),
  async play(canvas) {
    expect(line(canvas)).toBe("Waits for your answer");
  },
};

/** A chat that waits for a worker has its place in line. */
export const InLine: Story = {
  ...row({ status: "running", place_in_line: 3 }),
  async play(canvas) {
    expect(line(canvas)).toBe("Number 3 in line");
  },
};

/** Branch with added and deleted lines and the number of files, and the length of the queue. */
export const Changes: Story = {
  ...row({ queue_length: 2, diff_status: { branch: "main\u202e", changed_files: 3, added_lines: 12, deleted_lines: 4 } }),
  async play(canvas) {
    expect(facts(canvas)).toBe("mainU+202E +12 −42 queued");
    expect(canvas.querySelector(".chat-row-facts > span")?.getAttribute("title")).toBe("3 files changed");
  },
};

/** A chat of somebody else names its owner and has no menu. */
export const SharedBySomebody: Story = {
  ...row({ shared: true, owner_name: "Grace" }, false),
  async play(canvas) {
    expect([facts(canvas), canvas.querySelector("button")]).toEqual(["shared by Grace", null]);
  },
};
