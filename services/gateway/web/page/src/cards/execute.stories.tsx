/** The states of the card of a command in the component story format, each with what must hold in it. */
import { act, type ReactNode } from "react";
import { expect } from "vitest";
import type { ChatEvent, ToolCallPart, ToolResultPart } from "../api/types.ts";
import { OutputsContext, ProcessOutputs } from "../stream/process-outputs.ts";
import { button, type Story } from "../testing/stories.tsx";
import { ExecuteCard } from "./execute.tsx";
import type { Standing } from "./outcome.ts";

const PROCESS = "00000000-0000-0000-0000-0000000000b1";

function card(standing: Standing, result: object | null): ReactNode {
  const call = { type: "tool-call", tool_call_id: "call_1", tool_name: "execute", args: { command: "make test" } };
  return (
    <ExecuteCard
      chatId="chat-1"
      standing={standing}
      call={call as unknown as ToolCallPart}
      result={result as ToolResultPart | null}
    />
  );
}

function ended(outcome: string, told: object): object {
  return { type: "tool-result", tool_call_id: "call_1", tool_name: "execute", outcome, result: told };
}

function output(canvas: HTMLElement): string {
  return canvas.querySelector(".terminal-output")?.textContent ?? "";
}

function head(canvas: HTMLElement): string {
  return canvas.querySelector(".card-head")?.textContent ?? "";
}

/** Open, with the output that has come so far and its colours, and a button that stops it. */
export const Running: Story = {
  render: () => card("running", { type: "tool-result", process_id: PROCESS, result_delta: "\u001b[31mred\u001b[0m\n" }),
  async play(canvas) {
    expect(output(canvas)).toBe("red\n");
    expect(canvas.querySelector(".terminal-output span")?.className).toContain("red");
    expect(button(canvas, "Stop this command")).toBeDefined();
  },
};

/** A command that failed has its exit code, and one that a signal ended the name of that. */
export const Failed: Story = {
  render: () => [
    <div key="0">{card("done", ended("done", { output: "no\n", exit_code: 2 }))}</div>,
    <div key="1">{card("done", ended("done", { output: "", signal: "SIGKILL", exit_code: null }))}</div>,
  ],
  async play(canvas) {
    expect([...canvas.querySelectorAll(".badge.is-bad")].map((each) => each.textContent)).toEqual(["exit 2", "SIGKILL"]);
  },
};

/** It may have run: the card says so, and warns. */
export const Unknown: Story = {
  render: () => card("unknown", null),
  async play(canvas) {
    expect(head(canvas)).toContain("may have run");
    expect(canvas.textContent).toContain("Look before you repeat it.");
  },
};

const background = ended("done", { output: "begun\n", running: true, process_id: PROCESS });

/** In the background, where no chat is shown: nothing can be followed. */
export const Background: Story = {
  render: () => card("done", background),
  async play(canvas) {
    expect(output(canvas)).toBe("begun\n");
    expect(canvas.textContent).toContain("It went on in the background.");
    expect(button(canvas, "Follow")).toBeUndefined();
  },
};

const outputs = new ProcessOutputs(() => {});

async function told(event: object): Promise<void> {
  await act(async () => void outputs.take([{ chat_id: "chat-1", ...event } as ChatEvent]));
}

/** In the background and followed: its output grows until it ends. */
export const Followed: Story = {
  render: () => <OutputsContext value={outputs}>{card("done", background)}</OutputsContext>,
  async play(canvas, press) {
    await press(button(canvas, "Follow")!);
    expect(outputs.query).toBe(`${PROCESS}:0`);
    const shared = { process_id: PROCESS, truncation: null };
    await told({ type: "process_output", process_output: { ...shared, cursor: 0, text: "begun\n", next_cursor: 6 } });
    await told({ type: "process_output", process_output: { ...shared, cursor: 6, text: "more\n", next_cursor: 11 } });
    expect(output(canvas)).toBe("begun\nmore\n");
    expect(button(canvas, "Stop this command")).toBeDefined();
    const process = { exit: { exit_code: 3, signal: null } };
    await told({ type: "process_ended", process_ended: { process_id: PROCESS, process, error: null } });
    expect(canvas.textContent).toContain("It ended with exit code 3.");
    expect(button(canvas, "Stop this command")).toBeUndefined();
    await press(button(canvas, "Stop following")!);
    expect([output(canvas), outputs.query]).toEqual(["begun\n", ""]);
  },
};

/** A process that cannot be followed says why. */
export const Refused: Story = {
  render: () => <OutputsContext value={outputs}>{card("done", background)}</OutputsContext>,
  async play(canvas, press) {
    await press(button(canvas, "Follow")!);
    const error = { code: "PROCESS_NOT_FOUND", message: "There is no such process." };
    await told({ type: "process_ended", process_ended: { process_id: PROCESS, process: null, error } });
    expect(canvas.querySelector(".card-problem")?.textContent).toBe("There is no such process.");
  },
};

/** Of much output in one line the end is shown, and how much there is. */
export const LongLine: Story = {
  render: () => card("done", ended("done", { output: `${"x".repeat(1 << 20)}the end`, exit_code: 0 })),
  async play(canvas) {
    expect([output(canvas).length, output(canvas).endsWith("the end")]).toEqual([60_000, true]);
    expect(canvas.textContent).toMatch(/The end of 1.?048.?583 characters:/);
  },
};
