import { expect, test } from "vitest";
import type { Model } from "../api/types.ts";
import { groupsOfModels, offeredModels } from "./groups.ts";

function model(id: string, provider_display_name: string): Model {
  return { id, name: id, display_name: id.toUpperCase(), provider_display_name } as Model;
}

const MODELS = [model("zeta", "OpenAI"), model("alpha", "Anthropic"), model("beta", "")];

function shown(words: string): [string, string[]][] {
  return groupsOfModels(MODELS, words).map((group) => [group.title, group.models.map((each) => each.id)]);
}

test("models are grouped by provider, and those of providers without a name come last", () => {
  expect(shown("")).toEqual([["Anthropic", ["alpha"]], ["OpenAI", ["zeta"]], ["Other providers", ["beta"]]]);
});

test("words of names and providers narrow the list, all of them", () => {
  expect(shown("open ZET")).toEqual([["OpenAI", ["zeta"]]]);
  expect(shown("open alpha")).toEqual([]);
});

test("favourites come first, in a group of their own", () => {
  const [zeta, ...others] = MODELS;
  const groups = groupsOfModels([{ ...zeta!, is_favourite: true }, ...others], "");
  expect(groups.map((group) => group.title)).toEqual(["Favourites", "Anthropic", "Other providers"]);
});

test("a hidden model is offered only while it is chosen", () => {
  const models = [{ ...MODELS[0]!, enabled: true }, { ...MODELS[1]!, enabled: true, is_hidden: true }];
  expect(offeredModels(models, null).map((each) => each.id)).toEqual(["zeta"]);
  expect(offeredModels(models, "alpha").map((each) => each.id)).toEqual(["zeta", "alpha"]);
});
