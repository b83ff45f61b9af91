// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { newCanvas } from "../testing/canvas.tsx";
import { UsageTotals } from "./totals.tsx";

const canvas = newCanvas();
const TOTALS = { cost_micros: 0, priced_calls: 0, input_tokens: 5, output_tokens: 3, cache_read_tokens: 0, estimated_cost_micros: 0 };

test.each([
  [1, ["1 call had no known price and is not in the cost.", "1 call ($0) is an estimate: the provider did not report it."]],
  [2, ["2 calls had no known price and are not in the cost.", "2 calls ($0) are estimates: the provider did not report them."]],
])("%i calls without a price are told in a sentence", async (calls, sentences) => {
  await canvas.show(<UsageTotals totals={{ ...TOTALS, unpriced_calls: calls, estimated_calls: calls } as unknown as Parameters<typeof UsageTotals>[0]["totals"]} />);
  expect([...canvas.element.querySelectorAll(".field-hint")].map((each) => each.textContent)).toEqual(sentences);
});
