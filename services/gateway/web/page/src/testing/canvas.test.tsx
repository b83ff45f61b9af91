// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { newCanvas } from "./canvas.tsx";

const canvas = newCanvas();
const ADDRESS = "http://localhost:3000/";

test("a download that is pressed leaves the document where it is", async () => {
  await canvas.show(<a href="blob:x" download="turn.json">Save</a>);
  await canvas.press(canvas.element.querySelector("a")!);
  expect(location.href).toBe(ADDRESS);
});

test("a test may go to another address", () => {
  history.pushState(null, "", "/chats/c1");
  expect(location.pathname).toBe("/chats/c1");
});

test("the next test begins at the first address", () => {
  expect(location.href).toBe(ADDRESS);
});
