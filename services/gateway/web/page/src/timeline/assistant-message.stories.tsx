/** Answers in the component story format, each with what must hold in it. */
import { expect, vi } from "vitest";
import type { Message, Part } from "../api/types.ts";
import type { Story } from "../testing/stories.tsx";
import { AssistantMessage } from "./assistant-message.tsx";
import { type AssistantItem, itemsOf } from "./items.ts";

const LONG = `https://leak.test/?q=${"x".repeat(80)}`;
const SOURCES = [
  { type: "source", url: "https://tides.test/brest?day=1", title: "Tides of Brest" },
  { type: "source", url: "https://plain.test/", title: "" },
  { type: "source", url: LONG, title: "Read on" },
  { type: "source", url: "javascript:alert(1)", title: "A script" },
];

function answer(finish: string, more: readonly object[] = []): Story["render"] {
  const content = [{ type: "text", text: "High water is at noon." }, ...more] as unknown as Part[];
  const message = { id: 2, role: "assistant", content, finish_reason: finish } as unknown as Message;
  const [item] = itemsOf([message], null);
  return () => <AssistantMessage item={item as AssistantItem} chatId="c1" isRunning={false} isLastOfTurn actions={[]} />;
}

const ending = (canvas: HTMLElement): string | null | undefined => canvas.querySelector(".message-ending")?.textContent;

/** Each source is a link that shows its host; what is no address of the web is left out, and nothing is loaded. */
export const Sources: Story = {
  before: () => void vi.stubGlobal("fetch", vi.fn()),
  render: answer("stop", SOURCES),
  async play(canvas) {
    const list = canvas.querySelector("ul[aria-label=Sources]")!;
    expect([...list.querySelectorAll("li")].map((each) => each.textContent)).toEqual([
      "Tides of Brest (tides.test)",
      "plain.test",
      "Read on (leak.test)",
    ]);
    expect([...list.querySelectorAll("a")].map((each) => [each.getAttribute("href"), each.rel])).toEqual(
      ["https://tides.test/brest?day=1", "https://plain.test/", LONG].map((href) => [href, "noopener noreferrer nofollow"]),
    );
    expect(canvas.querySelectorAll("[src], [srcset], link, iframe, object, embed")).toHaveLength(0);
    expect(fetch).not.toHaveBeenCalled();
  },
};

/** A source whose address could carry data out asks before it is opened, as links of the text do. */
export const SourceThatAsks: Story = {
  render: answer("stop", SOURCES),
  async play(canvas, press) {
    const asked = vi.fn((_words: string) => false);
    vi.stubGlobal("confirm", asked);
    const opens: boolean[] = [];
    // The document of tests would go to the address.
    const note = (event: Event): void => {
      opens.push(!event.defaultPrevented);
      event.preventDefault();
    };
    document.addEventListener("click", note);
    try {
      const [tides, , long] = canvas.querySelectorAll(".sources a");
      await press(long!);
      expect([opens, asked.mock.calls.length]).toEqual([[false], 1]);
      expect(asked.mock.calls[0]?.[0]).toContain("leak.test");
      asked.mockReturnValue(true);
      await press(long!);
      await press(tides!);
      expect([opens, asked.mock.calls.length]).toEqual([[false, true, true], 2]);
    } finally {
      document.removeEventListener("click", note);
    }
  },
};

/** An answer that is whole says nothing of its end. */
export const Whole: Story = {
  render: answer("stop"),
  async play(canvas) {
    expect([canvas.textContent?.includes("High water is at noon."), ending(canvas)]).toEqual([true, undefined]);
  },
};

/** The model reached the length that one answer may have. */
export const CutByLength: Story = {
  render: answer("length"),
  async play(canvas) {
    expect(ending(canvas)).toBe("The answer stops here because it reached its length limit.");
  },
};

/** The provider blocked what would have followed; what came before stays. */
export const CutByFilter: Story = {
  render: answer("content_filter"),
  async play(canvas) {
    expect(ending(canvas)).toBe("The provider blocked the rest of the answer.");
    expect(canvas.textContent).toContain("High water is at noon.");
  },
};

/** A person stopped the turn. */
export const Interrupted: Story = {
  render: answer("interrupted"),
  async play(canvas) {
    expect(ending(canvas)).toBe("Interrupted. What was said until then is kept.");
  },
};
