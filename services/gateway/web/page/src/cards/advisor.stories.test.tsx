// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { playAll } from "../testing/stories.tsx";
import * as stories from "./advisor.stories.tsx";

const canvas = playAll(stories);

test("the cards beside the advisor's are those without it", async () => {
  // The ids of bodies count all cards of the page.
  const outer = () => [...canvas.element.querySelectorAll(":scope > .card")].map((each) => each.outerHTML.replaceAll(/ (id|aria-controls)="[^"]*"/g, ""));
  await canvas.show(stories.Neighbours.render());
  const without = outer();
  await canvas.show(stories.BetweenNeighbours.render());
  expect(outer()).toEqual(without);
  expect(without).toHaveLength(2);
});
