/** What people do in forms, so that React hears it. */
import { act } from "react";

/** Write into a field in place of what it held. */
export async function typed(field: Element, text: string): Promise<void> {
  await changed(field, text, "input");
}

export async function choose(field: Element, value: string): Promise<void> {
  await changed(field, value, "change");
}

/** Return the check mark whose label begins with these words. */
export function labelled(canvas: Element, words: string): HTMLInputElement {
  return [...canvas.querySelectorAll("label")].find((each) => each.textContent?.startsWith(words))!.querySelector("input")!;
}

async function changed(field: Element, value: string, event: string): Promise<void> {
  await act(async () => {
    Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), "value")!.set!.call(field, value);
    field.dispatchEvent(new Event(event, { bubbles: true }));
  });
}
