/** The states of the advisor's card in the component story format, each with what must hold in it. */
import { expect } from "vitest";
import type { ToolCallPart, ToolResultPart } from "../api/types.ts";
import type { Story } from "../testing/stories.tsx";
import { AdvisorCard } from "./advisor.tsx";
import type { CardProps, Standing } from "./outcome.ts";
import { ToolCard } from "./tool-card.tsx";

const QUESTION = "One table, or a broker?";
const call = { type: "tool-call", tool_call_id: "call_1", tool_name: "advisor", args: { question: QUESTION } };

function props(standing: Standing, result: object | null): CardProps {
  return { call: call as unknown as ToolCallPart, result: result as ToolResultPart | null, standing };
}

function ended(outcome: string, result: object): object {
  return { type: "tool-result", tool_call_id: "call_1", tool_name: "advisor", outcome, result };
}

function head(canvas: HTMLElement): HTMLButtonElement {
  return canvas.querySelector<HTMLButtonElement>(".card-head")!;
}

function body(canvas: HTMLElement): string {
  return canvas.querySelector(".card-body")?.textContent ?? "";
}

/** Press the head of a card twice, and check that its body comes and goes. */
async function opensAndCloses(canvas: HTMLElement, press: (element: Element) => Promise<void>): Promise<void> {
  const isOpen = head(canvas).getAttribute("aria-expanded") === "true";
  for (const expected of [!isOpen, isOpen]) {
    await press(head(canvas));
    expect(head(canvas).getAttribute("aria-expanded")).toBe(String(expected));
    expect(canvas.querySelector(".card-body") !== null).toBe(expected);
  }
}

const given = ended("done", {
  type: "advice",
  advice: "Begin with **one table**.",
  advisor_model: "acme/wise",
  remaining_uses: 2,
  usage: { input_tokens: 900, output_tokens: 42, cost_micros: 12_000, is_estimate: false },
});

/** Closed at first; its advice is formatted text and never JSON. */
export const Advice: Story = {
  render: () => <AdvisorCard {...props("done", given)} />,
  async play(canvas, press) {
    expect(head(canvas).textContent).toContain("Asked the advisor");
    expect(canvas.querySelector(".card-body")).toBeNull();
    await opensAndCloses(canvas, press);
    await press(head(canvas));
    expect(body(canvas)).toContain(QUESTION);
    expect(canvas.querySelector(".card-body strong")?.textContent).toBe("one table");
    expect(body(canvas)).toContain("acme/wise, 42 tokens, 2 more questions in this turn");
    expect(body(canvas)).not.toContain("{");
  },
};

/** Advice that reached its length limit says so below it. */
export const CutAdvice: Story = {
  render: () => {
    const told = { type: "advice", advice: "Begin with", cut: "length", remaining_uses: 2 };
    return <AdvisorCard {...props("done", ended("done", told))} />;
  },
  async play(canvas, press) {
    await press(head(canvas));
    expect(canvas.querySelector(".message-ending")?.textContent).toBe("It stops here because it reached its length limit.");
  },
};

/** Open, with the words that have come so far. */
export const Running: Story = {
  render: () => <AdvisorCard {...props("running", { type: "tool-result", result_delta: "Begin with" })} />,
  async play(canvas, press) {
    expect(head(canvas).textContent).toContain("Asks the advisor");
    expect(canvas.querySelector(".card.is-running .spinner")).not.toBeNull();
    expect(body(canvas)).toBe(`${QUESTION}Begin with`);
    await opensAndCloses(canvas, press);
  },
};

/** Done, but with a warning in place of advice. */
export const LimitReached: Story = {
  render: () => {
    const told = { type: "limit_reached", message: "It was asked 3 times in this turn.", remaining_uses: 0 };
    return <AdvisorCard {...props("done", ended("done", told))} />;
  },
  async play(canvas, press) {
    expect(head(canvas).textContent).toContain("Advisor limit reached");
    await opensAndCloses(canvas, press);
    await press(head(canvas));
    expect(canvas.querySelector(".card-note")?.textContent).toBe("It was asked 3 times in this turn.");
  },
};

/** Open, with the reason and what to do. */
export const Failure: Story = {
  render: () => {
    const told = { type: "error", error: "The provider is down.", hint: "Go on without it.", remaining_uses: 3 };
    return <AdvisorCard {...props("failed", ended("failed", told))} />;
  },
  async play(canvas, press) {
    expect(head(canvas).textContent).toContain("The advisor could not help");
    expect(canvas.querySelector(".badge.is-bad")?.textContent).toBe("failed");
    expect(canvas.querySelector(".field-problem")?.textContent).toBe("The provider is down. Go on without it.");
    await opensAndCloses(canvas, press);
  },
};

/** A call whose result is lost, or has no words of its own. */
export const FailureWithoutWords: Story = {
  render: () => <AdvisorCard {...props("unknown", null)} />,
  async play(canvas) {
    expect(canvas.querySelector(".field-problem")?.textContent?.trim()).toBe("There is no advice.");
  },
};

const command = {
  call: { type: "tool-call", tool_call_id: "call_0", tool_name: "execute", args: { command: "echo before" } },
  result: { type: "tool-result", tool_call_id: "call_0", outcome: "done", result: { output: "before\n", exit_code: 0 } },
};
const agent = {
  call: { type: "tool-call", tool_call_id: "call_2", tool_name: "spawn_agent", args: { name: "Tax", prompt: "Write it." } },
  result: { type: "tool-result", tool_call_id: "call_2", outcome: "done", result: { agent_id: "a-1", status: "running" } },
};

function Neighbour({ of: { call, result } }: { of: typeof command | typeof agent }) {
  return (
    <ToolCard
      chatId="chat-1"
      standing="done"
      call={call as unknown as ToolCallPart}
      result={result as unknown as ToolResultPart}
    />
  );
}

/** A command and an agent, without an advisor between them. */
export const Neighbours: Story = {
  render: () => [<Neighbour key="0" of={command} />, <Neighbour key="2" of={agent} />],
  async play(canvas) {
    const labels = [...canvas.querySelectorAll(".card-label")].map((each) => each.textContent);
    expect(labels).toEqual(["echo before", "Started the agent Tax"]);
  },
};

/** The same with an advisor: opening and closing its card changes nothing of the others. */
export const BetweenNeighbours: Story = {
  render: () => [
    <Neighbour key="0" of={command} />,
    <div key="1" data-testid="advisor"><ToolCard chatId="chat-1" {...props("done", given)} /></div>,
    <Neighbour key="2" of={agent} />,
  ],
  async play(canvas, press) {
    const advisor = canvas.querySelector<HTMLElement>("[data-testid=advisor]")!;
    const others = () => [...canvas.querySelectorAll(":scope > .card")].map((each) => each.outerHTML);
    const before = others();
    await press(head(advisor));
    expect(body(advisor)).toContain("one table");
    expect(others()).toEqual(before);
    for (const other of canvas.querySelectorAll<HTMLElement>(":scope > .card")) {
      const isOpen = other.querySelector(".card-body") !== null;
      await press(other.querySelector(".card-head")!);
      expect(other.querySelector(".card-body") !== null).toBe(!isOpen);
      await press(other.querySelector(".card-head")!);
    }
    expect(others()).toEqual(before);
    expect(body(advisor)).toContain("one table");
  },
};
