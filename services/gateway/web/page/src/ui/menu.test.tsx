// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { newCanvas } from "../testing/canvas.tsx";
import { MenuItem } from "./menu.tsx";

const canvas = newCanvas();

test("what is chosen has a check mark, and what is not has the place of one", async () => {
  await canvas.show([true, false].map((checked) => <MenuItem key={String(checked)} checked={checked} onChoose={() => {}}>One</MenuItem>));
  const marks = [...canvas.element.querySelectorAll(".icon")].map((each) => each.tagName);
  expect(marks).toEqual(["svg", "SPAN"]);
});
