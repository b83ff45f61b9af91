/** Lines of a file with a comment on them, which other parts of the page hand to the composer. */
export interface Reference {
  fileName: string;
  startLine: number;
  endLine: number;
  content: string;
  comment: string;
}

const REFERENCE = "parley:reference";

/** Hand a reference to the composer that is shown. */
export function refer(reference: Reference): void {
  dispatchEvent(new CustomEvent(REFERENCE, { detail: reference }));
}

/** Take references until the returned function is called. */
export function onReference(take: (reference: Reference) => void): () => void {
  const listener = (event: Event): void => take((event as CustomEvent<Reference>).detail);
  addEventListener(REFERENCE, listener);
  return () => removeEventListener(REFERENCE, listener);
}

/** What a reference says in one line. */
export function referenceName({ fileName, startLine, endLine }: Reference): string {
  return endLine > startLine ? `${fileName}:${startLine}-${endLine}` : `${fileName}:${startLine}`;
}
