/** What happens below the last message in the component story format, each state with what must hold in it. */
import { act } from "react";
import { expect, vi } from "vitest";
import { type ChatState, EMPTY } from "../stream/chat-state.ts";
import type { ChatView } from "../stream/chat-store.ts";
import { button, type Story } from "../testing/stories.tsx";
import { LiveState } from "./live-state.tsx";

const FAILURE = { kind: "overloaded", message: "Too many requests at once.", provider: "acme", retryable: true, status_code: 529, detail: null };

function shown(chat: object, view: Partial<ChatView> = {}, onAgain?: () => Promise<void>): Story["render"] {
  const all = { ...EMPTY, ...chat } as ChatState;
  return () => <LiveState hasTail={false} onAgain={onAgain} view={{ chat: all, isLoaded: true, link: "open", isInterrupted: false, problem: null, ...view }} />;
}

const title = (canvas: HTMLElement): string | null | undefined => canvas.querySelector(".notice-title")?.textContent;
const isAlert = (canvas: HTMLElement): boolean => canvas.querySelector("[role=alert]") !== null;

/** Nothing is said while nothing happens. */
export const Idle: Story = {
  render: shown({ status: "waiting" }),
  async play(canvas) {
    expect(canvas.textContent).toBe("");
  },
};

/** A turn that has not answered yet. */
export const Working: Story = {
  render: shown({ status: "running" }),
  async play(canvas) {
    expect(canvas.textContent).toBe("Working");
  },
};

/** No worker is free: the place in line. */
export const InLine: Story = {
  render: shown({ status: "running", placeInLine: 3 }),
  async play(canvas) {
    expect(canvas.textContent).toBe("Number 3 in line for a free worker");
  },
};

/** An interrupt is under way. */
export const Stopping: Story = {
  render: shown({ status: "interrupting" }),
  async play(canvas) {
    expect(canvas.textContent).toBe("Stopping…");
  },
};

/** The countdown begins at the delay of the server, whatever its clock says, and goes down. */
export const Retrying: Story = {
  before: () => void vi.useFakeTimers(),
  render: shown({ status: "running", retry: { attempt: 2, delay_ms: 4000, retrying_at: "2001-01-01T00:00:00Z", error: FAILURE } }),
  async play(canvas) {
    try {
      expect(title(canvas)).toBe("Acme is temporarily unavailable");
      expect(canvas.textContent).toContain("Attempt 2. Trying again in 4 s.");
      await act(async () => void (await vi.advanceTimersByTimeAsync(2_500)));
      expect(canvas.textContent).toContain("Trying again in 2 s.");
      await act(async () => void (await vi.advanceTimersByTimeAsync(2_500)));
      expect(canvas.textContent).toContain("Trying again now.");
      expect(isAlert(canvas)).toBe(false);
    } finally {
      vi.useRealTimers();
    }
  },
};

/** The connection broke while something ran: the agent goes on. */
export const Reconnecting: Story = {
  render: shown({ status: "running" }, { link: "waiting", isInterrupted: true }),
  async play(canvas) {
    expect(title(canvas)).toBe("Connecting again");
    expect(canvas.textContent).toContain("The agent goes on");
  },
};

/** A failed turn has the reason in words, the status of the provider, and what helps. */
export const Failed: Story = {
  render: shown({ status: "error", error: FAILURE }),
  async play(canvas) {
    expect([title(canvas), isAlert(canvas)]).toEqual(["The provider is overloaded", true]);
    expect(canvas.textContent).toContain("choose another model");
    expect(canvas.textContent).toContain("HTTP 529.");
  },
};

/** An error of a kind that this page does not know still has its words. */
export const UnknownFailure: Story = {
  render: shown({ status: "error", error: { ...FAILURE, kind: "something_new", status_code: null } }),
  async play(canvas) {
    expect([title(canvas), canvas.textContent?.includes("Send the message again.")]).toEqual(["The turn failed", true]);
  },
};

/** The chat was deleted while it was read. */
export const Ended: Story = {
  render: shown({ status: "running", ended: "The chat was deleted." }),
  async play(canvas) {
    expect([title(canvas), isAlert(canvas)]).toEqual(["This chat is no longer there", true]);
  },
};

let again = 0;

/** The owner runs a failed turn again; the button waits for the answer. */
export const TriedAgain: Story = {
  render: shown({ status: "error", error: FAILURE }, {}, async () => void (again += 1)),
  async play(canvas, press) {
    again = 0;
    await press(button(canvas, "Try again")!);
    expect([again, button(canvas, "Try again")?.disabled]).toEqual([1, false]);
  },
};

/** Others read that it failed, and have no button. */
export const FailedForReaders: Story = {
  render: shown({ status: "error", error: FAILURE }),
  async play(canvas) {
    expect([isAlert(canvas), button(canvas, "Try again")]).toEqual([true, undefined]);
  },
};
