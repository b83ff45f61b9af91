/** Save values as files. */

/** Have the browser save a value as a JSON file. */
export function saveJson(name: string, value: unknown): void {
  saveBlob(name, new Blob([JSON.stringify(value, null, 2)], { type: "application/json" }));
}

/** Have the browser save bytes as a file. */
export function saveBlob(name: string, content: Blob): void {
  const href = URL.createObjectURL(content);
  Object.assign(document.createElement("a"), { href, download: name }).click();
  // The download has begun by then, and has what it needs.
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}
