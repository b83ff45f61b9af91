import { expect, test } from "vitest";
import { isUsed, type Server, stateOf, toggled } from "./selection.ts";

function server(id: string, settings: Partial<Server>): Server {
  return { id, is_enabled: true, availability: "default_off", authorization_status: null, ...settings } as Server;
}

const ALL = [
  server("forced", { availability: "force_on" }),
  server("usual", { availability: "default_on" }),
  server("other", {}),
  server("off", { availability: "default_on", is_enabled: false }),
];

test("a chat that chose nothing uses what is forced on and what is on by default", () => {
  expect(ALL.filter((each) => isUsed(each, null)).map((each) => each.id)).toEqual(["forced", "usual"]);
});

test("a choice leaves forced servers on and disabled ones off", () => {
  expect(ALL.filter((each) => isUsed(each, ["other", "off"])).map((each) => each.id)).toEqual(["forced", "other"]);
});

test("the first choice begins with the defaults, and an absent server stays chosen", () => {
  expect(toggled(ALL, null, "other")).toEqual(["usual", "other"]);
  expect(toggled(ALL, ["off", "other"], "other")).toEqual(["off"]);
});

test("a server without a login offers one", () => {
  expect(stateOf(server("a", { authorization_status: "needs_reconnect" })).action).toBe("connect");
  expect(stateOf(server("a", {}))).toEqual({ words: "Ready", action: null });
});
