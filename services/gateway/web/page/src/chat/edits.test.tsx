// @vitest-environment happy-dom
import { act } from "react";
import { expect, test } from "vitest";
import { Unreachable } from "../api/problem.ts";
import { newCanvas, settled } from "../testing/canvas.tsx";
import { type Edits, useEdits } from "./edits.ts";

const canvas = newCanvas();
let edits: Edits;

function Composer({ messageId }: { messageId: number | undefined }) {
  edits = useEdits(messageId);
  return <p>{edits.isWaiting ? "waits" : "rests"}</p>;
}

const words = () => canvas.element.textContent;

test("an edit without an answer is not sent any more once another message is edited or the chat is left", async () => {
  for (const next of [<Composer messageId={2} />, <Composer messageId={undefined} />, null]) {
    await canvas.show(<Composer messageId={1} />);
    let attempts = 0;
    let stored: Promise<unknown> = Promise.resolve();
    await act(async () => {
      stored = edits.stored(async () => {
        attempts += 1;
        throw new Unreachable();
      });
    });
    await settled(() => expect(words()).toBe("waits"));
    await canvas.show(next);
    expect([await stored, attempts]).toEqual([undefined, 1]);
  }
});

test("an edit that is under way when it is given up is told if it was stored all the same", async () => {
  await canvas.show(<Composer messageId={1} />);
  const { promise, resolve } = Promise.withResolvers<string>();
  let stored: Promise<unknown> = Promise.resolve();
  await act(async () => {
    stored = edits.stored(() => promise);
    edits.giveUp();
    resolve("answer");
  });
  expect(await stored).toEqual({ answer: "answer", isWanted: false });
});
