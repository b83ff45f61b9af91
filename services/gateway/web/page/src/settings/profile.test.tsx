// @vitest-environment happy-dom
import { act } from "react";
import { beforeEach, expect, test, vi } from "vitest";
import { queryClient } from "../api/queries.ts";
import { newCanvas, settled } from "../testing/canvas.tsx";
import { button } from "../testing/stories.tsx";
import ProfileSection from "./profile.tsx";

const CHANGED = { type: "about:blank", title: "Changed", status: 412, detail: "Somebody changed it meanwhile.", instance: "", code: "VERSION_CONFLICT", retryable: false };

let profile: { id: string; login: string; role: string; display_name: string; email: string | null };
let version: number;

const canvas = newCanvas();
const nameField = () => canvas.element.querySelector("input")!;
const alertWords = () => canvas.element.querySelector("[role=alert]")?.textContent;

/** Somebody else gives another name. */
function renameElsewhere(name: string): void {
  profile = { ...profile, display_name: name };
  version += 1;
}

async function type(name: string): Promise<void> {
  await act(async () => {
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value")!.set!.call(nameField(), name);
    nameField().dispatchEvent(new Event("input", { bubbles: true }));
  });
}

beforeEach(async () => {
  profile = { id: "ann", login: "ann", role: "member", display_name: "Ann", email: null };
  version = 1;
  vi.stubGlobal("fetch", async (request: Request): Promise<Response> => {
    if (request.method === "PATCH") {
      if (request.headers.get("If-Match") !== `"${version}"`) return Response.json(CHANGED, { status: 412 });
      profile = { ...profile, ...((await request.json()) as object) };
      version += 1;
    }
    return Response.json(profile, { headers: { ETag: `"${version}"` } });
  });
  await canvas.show(<ProfileSection />);
  await settled(() => expect(nameField().value).toBe("Ann"));
  await type("Anna");
});

test("a name that was given elsewhere is told, what was typed stays, and another press replaces it", async () => {
  renameElsewhere("Annika");
  await canvas.press(button(canvas.element, "Save")!);
  await settled(() => expect(alertWords()).toContain("changed meanwhile to Annika"));
  expect([profile.display_name, nameField().value]).toEqual(["Annika", "Anna"]);
  await canvas.press(button(canvas.element, "Save")!);
  await settled(() => expect(profile.display_name).toBe("Anna"));
});

test("a profile that is read again under the fields is not overwritten unseen", async () => {
  renameElsewhere("Annika");
  await act(() => queryClient.refetchQueries({ queryKey: ["profile-version"] }));
  await canvas.press(button(canvas.element, "Save")!);
  await settled(() => expect(alertWords()).toContain("changed meanwhile to Annika"));
  expect(profile.display_name).toBe("Annika");
});

test("what was saved can be changed again", async () => {
  await canvas.press(button(canvas.element, "Save")!);
  await settled(() => expect([profile.display_name, button(canvas.element, "Save")?.disabled]).toEqual(["Anna", false]));
  await type("Anne");
  await canvas.press(button(canvas.element, "Save")!);
  await settled(() => expect(profile.display_name).toBe("Anne"));
});
