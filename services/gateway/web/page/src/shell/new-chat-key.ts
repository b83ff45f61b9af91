/** The keys that begin a new chat also while one writes. */

interface Pressed {
  key: string;
  altKey: boolean;
  ctrlKey: boolean;
  metaKey: boolean;
  shiftKey: boolean;
}

/** Whether the browser says that it runs on a Mac. */
export function isMac(platform: string = navigator.platform): boolean {
  return platform.startsWith("Mac");
}

/**
 * Whether a new chat begins: with Alt N, or with Ctrl N (Cmd N on Macs), which browsers keep for a
 * new window unless the page is installed. On Macs Option N writes an accent and Ctrl N moves down
 * a line, so both stay with the text.
 */
export function beginsChat(pressed: Pressed, onMac: boolean): boolean {
  if (pressed.key.toLowerCase() !== "n" || pressed.shiftKey) return false;
  if (onMac) return pressed.metaKey && !pressed.ctrlKey && !pressed.altKey;
  return pressed.altKey !== (pressed.ctrlKey || pressed.metaKey);
}
