import { expect, test } from "vitest";
import { InOrder } from "./in-order.ts";

test("a change begins when the one before has ended, also badly", async () => {
  const changes = new InOrder();
  const first = Promise.withResolvers<void>();
  let stored: string[] = [];
  const add = (name: string, wait: Promise<void>) => async (): Promise<void> => {
    const was = stored;
    await wait;
    stored = [...was, name];
  };
  const all = [
    changes.run(add("a", first.promise)),
    changes.run(() => Promise.reject(new Error("refused"))),
    changes.run(add("b", Promise.resolve())),
  ];
  first.resolve();
  const outcomes = await Promise.allSettled(all);
  expect(outcomes.map((each) => each.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(stored).toEqual(["a", "b"]);
});
