/** A place in the document in which tests show components as the page does. */
import { QueryClientProvider } from "@tanstack/react-query";
import { act, type ReactNode, StrictMode } from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, vi } from "vitest";
import { queryClient } from "../api/queries.ts";

const LOOK_MS = 10;
/** Machines that build several things at once are slow. */
const SETTLED_MS_MAX = 15_000;

export interface Canvas {
  /** Where components are shown; each test has its own. */
  readonly element: HTMLElement;
  /** Show a node in place of what was shown. */
  show: (node: ReactNode) => Promise<void>;
  press: (element: Element) => Promise<void>;
}

/** Give each test of a file a place for components; what it stubbed and read, and the address it went to, end with it. */
export function newCanvas(): Canvas {
  let element: HTMLElement;
  let root: Root;

  beforeEach(() => {
    Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
    // What the document of tests lacks.
    Object.assign(HTMLElement.prototype, { showPopover() {}, scrollIntoView() {} });
    element = document.createElement("main");
    document.body.append(element);
    root = createRoot(element);
  });

  afterEach(async () => {
    await act(async () => root.unmount());
    element.remove();
    queryClient.clear();
    history.replaceState(null, "", "/");
    vi.unstubAllGlobals();
  });

  return {
    get element() {
      return element;
    },
    show: (node) =>
      act(async () =>
        root.render(
          <StrictMode>
            <QueryClientProvider client={queryClient}>{node}</QueryClientProvider>
          </StrictMode>,
        ),
      ),
    press: (pressed) => act(async () => (pressed as HTMLElement).click()),
  };
}

/** Wait until something holds; what React has to show by then is shown before each look. */
export async function settled(check: () => void): Promise<void> {
  await vi.waitFor(
    async () => {
      // What is answered meanwhile is shown when this ends.
      await act(() => new Promise((done) => setTimeout(done, LOOK_MS)));
      check();
    },
    { timeout: SETTLED_MS_MAX, interval: 0 },
  );
}
