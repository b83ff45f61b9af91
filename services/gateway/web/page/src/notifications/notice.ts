/** What the service worker does with a message of the push service; it has nothing of the page. */

export interface Pushed {
  kind: string;
  chat_id: string;
  title: string;
  body: string;
  path: string;
}

/** What is asked of an open window of this site. */
export interface OpenWindow {
  url: string;
  focused: boolean;
}

const TITLES: Readonly<Record<string, string>> = {
  finished: "A turn has ended",
  failed: "A turn has failed",
  asks: "A chat asks you something",
  test: "Notifications work",
};

/** Return the message, or undefined if it is none of ours. */
export function pushedOf(text: string): Pushed | undefined {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof data !== "object" || data === null) return undefined;
  const words = data as Record<string, unknown>;
  const textOf = (name: string): string => (typeof words[name] === "string" ? words[name] : "");
  const kind = textOf("kind");
  if (!(kind in TITLES)) return undefined;
  const path = textOf("path");
  return {
    kind,
    chat_id: textOf("chat_id"),
    title: textOf("title") || TITLES[kind]!,
    body: textOf("body") || TITLES[kind]!,
    // A path of this site, and of no other.
    path: /^(\/[\w-]+)+$/.test(path) ? path : "/",
  };
}

/** Return how to show a message: one for each chat, heard again only if the chat asks something. */
export function shownAs(pushed: Pushed): NotificationOptions & { renotify?: boolean } {
  const tag = pushed.chat_id || pushed.kind;
  return { body: pushed.body, tag, renotify: pushed.kind === "asks", data: { path: pushed.path } };
}

/** Whether the person is looking at the page that the message is about. */
export function isWatched(path: string, windows: readonly OpenWindow[]): boolean {
  return windows.some((each) => each.focused && new URL(each.url).pathname === path);
}

/** Return a window that shows a page. Another one is not sent there: it may have what would be lost. */
export function windowAt<W extends OpenWindow>(path: string, windows: readonly W[]): W | undefined {
  return windows.find((each) => new URL(each.url).pathname === path);
}
