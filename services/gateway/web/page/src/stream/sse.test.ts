import { expect, test } from "vitest";
import { frameParser } from "./sse.ts";

const TEXT = `: comment

id: a-1
event: status
data: {"type":"status"}

retry: 2000

id:
event: resync
data: {"type":
data: "resync"}

`;

test("frames come out whole, wherever the text is cut", () => {
  const whole = frameParser()(TEXT);
  expect(whole).toEqual([
    { id: "a-1", data: '{"type":"status"}' },
    { id: "", data: '{"type":\n"resync"}' },
  ]);
  for (let cut = 0; cut <= TEXT.length; cut += 1) {
    const parse = frameParser();
    expect([...parse(TEXT.slice(0, cut)), ...parse(TEXT.slice(cut))]).toEqual(whole);
  }
});
