import { expect, test } from "vitest";
import { bodyOf, OF_CHAT, OF_INSTALLATION, type OwnModel, valueOf, withThreshold } from "./own-model.ts";

function own(mode: OwnModel["mode"], model_id: string | null = null): OwnModel {
  return { purpose: "general", mode, model_id, reasoning_effort: null } as OwnModel;
}

test("a value of the field is stored as its mode or its model", () => {
  for (const each of [own("chat_default"), own("installation_default"), own("model", "m")]) {
    const stored = bodyOf(valueOf(each), null);
    expect([stored.mode, stored.model_id ?? null]).toEqual([each.mode, each.model_id]);
  }
  expect([valueOf(undefined), valueOf(own("installation_default"))]).toEqual([OF_CHAT, OF_INSTALLATION]);
});

test("only a model has an effort", () => {
  expect(bodyOf("m", "low")).toEqual({ mode: "model", model_id: "m", reasoning_effort: "low" });
  expect(bodyOf(OF_CHAT, "low")).toEqual({ mode: "chat_default" });
});

test("an empty threshold is that of the model", () => {
  expect(withThreshold({ a: 40, b: 50 }, "a", "90")).toEqual({ a: 90, b: 50 });
  expect(withThreshold({ a: 40, b: 50 }, "a", " ")).toEqual({ b: 50 });
});
