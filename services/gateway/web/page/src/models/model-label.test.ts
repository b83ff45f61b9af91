import { expect, test } from "vitest";
import { modelLabel, modelOptions } from "./model-label.ts";

const model = (id: string, display_name: string, provider_display_name: string) => ({ id, name: id, display_name, provider_display_name });
const MODELS = [model("a", "Large", "Acme"), model("b", "Large", "Other"), model("c", "", "Acme")];

test("a model is named with its provider where its name alone could be another's", () => {
  expect(MODELS.map((each) => modelLabel(each, MODELS))).toEqual(["Large · Acme", "Large · Other", "c"]);
});

test("options always name the provider, as far as it is known", () => {
  expect(modelOptions([...MODELS, model("d", "Small", "")])).toEqual([
    ["a", "Large · Acme"],
    ["b", "Large · Other"],
    ["c", "c · Acme"],
    ["d", "Small"],
  ]);
});
