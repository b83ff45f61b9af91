import { expect, test } from "vitest";
import type { Model } from "../api/types.ts";
import { failureWords, modelWords } from "./words.ts";

const MODELS = [
  { id: "1", name: "large", display_name: "Large", provider_display_name: "Maker" },
  { id: "2", name: "small", display_name: "", provider_display_name: "Maker" },
] as Model[];

test("an agent is shown with its model and its effort", () => {
  expect(modelWords({ model_id: "1", reasoning_effort: "high" }, MODELS)).toBe("Large, effort high");
  expect(modelWords({ model_id: "2", reasoning_effort: null }, MODELS)).toBe("small");
  expect(modelWords({ model_id: "gone", reasoning_effort: null }, MODELS)).toBe("");
});

test("the failure of an agent has kind, message and remedy, and older results a text", () => {
  const error = { kind: "overloaded", message: "It is busy.", remedy: "Wait.", retryable: true };
  expect(failureWords(error)).toBe("overloaded: It is busy. Wait.");
  expect(failureWords("no key")).toBe("no key");
  expect(failureWords(undefined)).toBe("");
});
