/** What chats ask of a person in the component story format, each state with what must hold in it. */
import { act } from "react";
import { expect, vi } from "vitest";
import type { Action } from "../../api/types.ts";
import { settled } from "../../testing/canvas.tsx";
import { button, type Story } from "../../testing/stories.tsx";
import { ActionCard } from "./card.tsx";

const REFUSAL = { type: "about:blank", title: "Ended", status: 409, detail: "Somebody answered it already.", instance: "", code: "ACTION_ENDED", retryable: false };

/** What was sent as answers, each with its key. */
let sent: { body: unknown; key: string | null }[] = [];

/** Take answers, or refuse them. */
function answering(refuses = false): () => void {
  return () => {
    sent = [];
    vi.stubGlobal("fetch", async (request: Request): Promise<Response> => {
      expect(new URL(request.url).pathname).toBe("/api/v1/chats/c1/actions/a1/answer");
      sent.push({ body: await request.json(), key: request.headers.get("Idempotency-Key") });
      return refuses ? Response.json(REFUSAL, { status: 409 }) : Response.json({}, { status: 202 });
    });
  };
}

function asked(kind: string, args: object, more: object = {}): Story["render"] {
  const action = { id: "a1", chat_id: "c1", kind, tool_name: "execute", args, reason: null, arguments_digest: null, ...more };
  return () => <ActionCard action={action as unknown as Action} />;
}

async function answeredWith(body: object): Promise<void> {
  await settled(() => expect(sent.map((each) => each.body)).toEqual([body]));
  expect(sent[0]?.key).toMatch(/^[0-9a-f]{32}$/);
}

async function type(element: HTMLInputElement | HTMLTextAreaElement, text: string): Promise<void> {
  const { set } = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(element) as object, "value")!;
  await act(async () => {
    set!.call(element, text);
    element.dispatchEvent(new Event("input", { bubbles: true }));
  });
}

function option(canvas: HTMLElement, label: string): HTMLInputElement {
  return [...canvas.querySelectorAll<HTMLLabelElement>("label.choice")].find((each) => each.textContent?.startsWith(label))!.querySelector("input")!;
}

const DATABASE = { header: "Database", question: "Which one?", options: [{ label: "PostgreSQL", description: "As everywhere" }, { label: "SQLite" }] };
const DAYS = { question: "On which days?", multi_select: true, options: [{ label: "Monday" }, { label: "Friday" }] };

/** A question has its choices, and cannot be answered before one of them is chosen or something is written. */
export const Question: Story = {
  before: answering(),
  render: asked("question", { questions: [DATABASE] }),
  async play(canvas, press) {
    expect(canvas.querySelector("legend")?.textContent).toBe("Which one?");
    expect(canvas.textContent).toContain("As everywhere");
    expect(button(canvas, "Answer")?.disabled).toBe(true);
    await press(option(canvas, "SQLite"));
    await press(button(canvas, "Answer")!);
    await answeredWith({ answers: [{ selected: ["SQLite"] }] });
  },
};

/** Own words take the place of a choice. */
export const QuestionInOwnWords: Story = {
  before: answering(),
  render: asked("question", { questions: [DATABASE] }),
  async play(canvas, press) {
    await press(option(canvas, "SQLite"));
    await type(canvas.querySelector<HTMLInputElement>("input.input")!, " neither ");
    expect(option(canvas, "SQLite").checked).toBe(false);
    await press(button(canvas, "Answer")!);
    await answeredWith({ answers: [{ text: "neither" }] });
  },
};

/** Several questions are asked one after the other; one goes back, and all answers are sent at the end. */
export const SeveralQuestions: Story = {
  before: answering(),
  render: asked("question", { questions: [DATABASE, DAYS] }),
  async play(canvas, press) {
    expect(canvas.querySelector(".badge")?.textContent).toBe("1 of 2");
    await press(option(canvas, "PostgreSQL"));
    await press(button(canvas, "Next")!);
    expect([canvas.querySelector("legend")?.textContent, sent]).toEqual(["On which days?", []]);
    await press(button(canvas, "Back")!);
    expect(option(canvas, "PostgreSQL").checked).toBe(true);
    await press(button(canvas, "Next")!);
    await press(option(canvas, "Monday"));
    await press(option(canvas, "Friday"));
    await press(button(canvas, "Answer")!);
    await answeredWith({ answers: [{ selected: ["PostgreSQL"] }, { selected: ["Monday", "Friday"] }] });
  },
};

/** What the server refuses is said, and what was chosen stays. */
export const QuestionRefused: Story = {
  before: answering(true),
  render: asked("question", { questions: [DATABASE] }),
  async play(canvas, press) {
    await press(option(canvas, "SQLite"));
    await press(button(canvas, "Answer")!);
    await settled(() => expect(canvas.querySelector("[role=alert]")?.textContent).toBe("Somebody answered it already."));
    expect([option(canvas, "SQLite").checked, button(canvas, "Answer")?.disabled]).toEqual([true, false]);
  },
};

const PLAN = { title: "Release", plan: "# Steps\n\n1. Tag it" };

/** A plan is formatted text, and is accepted as it was proposed. */
export const Plan: Story = {
  before: answering(),
  render: asked("plan", PLAN),
  async play(canvas, press) {
    expect(canvas.querySelector(".action-head")?.textContent).toBe("Plan: Release");
    expect(canvas.querySelector(".action-plan li")?.textContent).toBe("Tag it");
    await press(button(canvas, "Accept")!);
    await answeredWith({ decision: "accept" });
  },
};

/** A plan that was edited is accepted with its new text. */
export const PlanEdited: Story = {
  before: answering(),
  render: asked("plan", PLAN),
  async play(canvas, press) {
    await press(button(canvas, "Edit")!);
    await type(canvas.querySelector<HTMLTextAreaElement>("textarea.action-plan")!, "# Only this");
    await press(button(canvas, "Preview")!);
    expect(canvas.querySelector(".action-plan")?.textContent).toBe("Only this");
    expect(button(canvas, "Accept")).toBeUndefined();
    await press(button(canvas, "Accept as edited")!);
    await answeredWith({ decision: "accept", plan: "# Only this" });
  },
};

/** A plan is refused with what should change. */
export const PlanRefused: Story = {
  before: answering(),
  render: asked("plan", PLAN),
  async play(canvas, press) {
    await press(button(canvas, "Refuse…")!);
    expect(sent).toEqual([]);
    await type(canvas.querySelector<HTMLTextAreaElement>("label textarea")!, "smaller steps");
    await press(button(canvas, "Refuse")!);
    await answeredWith({ decision: "refuse", remark: "smaller steps" });
  },
};

const DIGEST = "0f".repeat(32);
const COMMAND = { command: "echo safe\u202e; rm x", workdir: "/srv/app", env: { A: "b" } };

/** An approval has the command with hidden characters made visible, why it is asked, and what it would touch. */
export const Approval: Story = {
  before: answering(),
  render: asked("approval", COMMAND, { reason: "Others see it.", arguments_digest: DIGEST }),
  async play(canvas, press) {
    expect(canvas.querySelector(".terminal-command")?.textContent).toBe("$ echo safeU+202E; rm x");
    expect(canvas.textContent).toContain("Others see it.");
    expect(canvas.textContent).toContain("The arguments contain characters that are not shown by themselves");
    expect(canvas.querySelector(".action-touched")?.textContent).toBe("It runs in /srv/app");
    expect(canvas.querySelector("details pre")?.textContent).toContain('"A": "b"');
    await press(button(canvas, "Allow once")!);
    await answeredWith({ decision: "accept", arguments_digest: DIGEST });
  },
};

/** What is allowed for the chat is remembered, with the digest of what was shown. */
export const ApprovalRemembered: Story = {
  before: answering(),
  render: asked("approval", COMMAND, { arguments_digest: DIGEST }),
  async play(canvas, press) {
    await press(button(canvas, "Allow in this chat")!);
    await answeredWith({ decision: "accept", remember: true, arguments_digest: DIGEST });
  },
};

/** A refusal carries a remark for the model. */
export const ApprovalRefused: Story = {
  before: answering(),
  render: asked("approval", COMMAND),
  async play(canvas, press) {
    await type(canvas.querySelector<HTMLInputElement>("input.input")!, "not on a Friday");
    await press(button(canvas, "Refuse")!);
    await answeredWith({ decision: "refuse", remark: "not on a Friday" });
  },
};

/** Arguments are shown to their end, however long they are: nothing is allowed unseen. */
export const ApprovalOfMuch: Story = {
  render: asked("approval", { path: "a.txt", content: `${"x".repeat(300_000)}the end` }, { tool_name: "write_file" }),
  async play(canvas) {
    expect(canvas.querySelector("details")?.open).toBe(true);
    expect(canvas.querySelector("details pre")?.textContent?.length).toBeGreaterThan(300_000);
    expect(canvas.querySelector("details pre")?.textContent).toContain("the end");
    expect(canvas.querySelector(".action-touched")?.textContent).toBe("It changes a.txt");
  },
};

/** A call that repeats itself is allowed once more or refused, and never for the whole chat. */
export const Loop: Story = {
  before: answering(),
  render: asked("loop", { command: "make" }),
  async play(canvas, press) {
    expect(canvas.querySelector(".action-head")?.textContent).toContain("The same call again and again");
    expect(button(canvas, "Allow in this chat")).toBeUndefined();
    await press(button(canvas, "Allow once")!);
    await answeredWith({ decision: "accept" });
  },
};

/** A tool of a program is waited for; a person has nothing to answer. */
export const ClientTool: Story = {
  render: asked("client_tool", { place: "Brest" }, { tool_name: "measure_tide" }),
  async play(canvas) {
    expect(canvas.querySelector(".action-head")?.textContent).toBe("Waits for the program that runs measure_tide");
    expect(canvas.textContent).toContain("Brest");
    expect(canvas.querySelector("button")).toBeNull();
  },
};
