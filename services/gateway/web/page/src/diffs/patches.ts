/** A patch of several files, file by file. */
export interface FilePatch {
  path: string;
  patch: string;
}

export function patchesOf(patch: string): FilePatch[] {
  return patch
    .split(/^(?=diff --git )/m)
    .filter((each) => each.startsWith("diff --git "))
    .map((each) => ({ path: pathOf(each), patch: each }));
}

function pathOf(patch: string): string {
  const added = /^\+\+\+ (?:b\/)?(.+)$/m.exec(patch)?.[1];
  if (added && added !== "/dev/null") return added;
  const removed = /^--- (?:a\/)?(.+)$/m.exec(patch)?.[1];
  if (removed && removed !== "/dev/null") return removed;
  return /^diff --git a\/(.+) b\/\1$/m.exec(patch)?.[1] ?? patch.slice("diff --git ".length).split("\n")[0]!;
}
