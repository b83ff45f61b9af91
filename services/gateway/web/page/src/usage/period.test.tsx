// @vitest-environment happy-dom
import { act, useState } from "react";
import { expect, test } from "vitest";
import { newCanvas } from "../testing/canvas.tsx";
import { PeriodField } from "./period.tsx";
import { joinedDays } from "./span.ts";

const canvas = newCanvas();

function Chosen() {
  const [period, setPeriod] = useState(joinedDays("2026-10-10", "2026-10-20"));
  return <PeriodField value={period} onChange={setPeriod} />;
}

const days = (): HTMLInputElement[] => [...canvas.element.querySelectorAll<HTMLInputElement>("input[type=date]")];

/** Type as a person does: React learns of it by the event, and not by the property that it replaced. */
async function type(input: HTMLInputElement, day: string): Promise<void> {
  await act(async () => {
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value")!.set!.call(input, day);
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });
}

test("days stay in their fields while they are typed", async () => {
  await canvas.show(<Chosen />);
  await type(days()[1]!, "0002-10-20");
  expect(days().map((each) => each.value)).toEqual(["2026-10-10", "0002-10-20"]);
  await type(days()[1]!, "2026-10-25");
  expect(days().map((each) => each.value)).toEqual(["2026-10-10", "2026-10-25"]);
});
