// @vitest-environment happy-dom
import { act } from "react";
import { expect, test, vi } from "vitest";
import { newCanvas, settled } from "../testing/canvas.tsx";
import { serve } from "../testing/server.ts";
import { button } from "../testing/stories.tsx";
import UsageSection from "./usage.tsx";

const TOTALS = {
  cost_micros: 2_500_000, priced_calls: 4, unpriced_calls: 3, input_tokens: 100, output_tokens: 20, cache_read_tokens: 0, cache_write_tokens: 0,
  model_runtime_ms: 0, estimated_calls: 0, estimated_cost_micros: 0, fallback_calls: 0,
};
const row = (id: string, name: string) => ({ id, name, provider_display_name: null, totals: TOTALS });

const canvas = newCanvas();

async function shows(text: string): Promise<void> {
  await settled(() => expect(canvas.element.textContent).toContain(text));
}

test("the usage of everyone leads to that of one user by model and chat, and back", async () => {
  serve({
    "/api/v1/users": { items: [{ id: "u1", login: "ada" }], next_cursor: null },
    "/api/v1/usage": { items: [row("u1", "ada")], next_cursor: null },
    "/api/v1/users/u1/usage": { totals: TOTALS, by_model: [row("m1", "Large")], by_chat: [row("c1", "Tides")] },
  });
  await canvas.show(<UsageSection />);
  await shows("ada");
  expect([...canvas.element.querySelectorAll("th")].map((each) => each.textContent)).toContain("Without a price");
  await canvas.press(button(canvas.element, "ada")!);
  await shows("Tides");
  expect(canvas.element.textContent).toContain("Large");
  expect(canvas.element.textContent).toContain("3 calls had no known price");
  await canvas.press(button(canvas.element, "Everyone")!);
  await settled(() => expect(canvas.element.querySelector("[aria-label='Usage by user']")).not.toBeNull());
});

test("days are chosen", async () => {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    asked.push(request.url);
    return Response.json({ items: [], next_cursor: null });
  });
  await canvas.show(<UsageSection />);
  const select = canvas.element.querySelector("select")!;
  await act(async () => {
    select.value = "chosen";
    select.dispatchEvent(new Event("change", { bubbles: true }));
  });
  expect(canvas.element.querySelectorAll("input[type=date]")).toHaveLength(2);
  await settled(() => expect(asked.some((each) => each.includes("end="))).toBe(true));
});
