/** Leaving for the sign-in and coming back to the same address; drafts stay in this browser. */
const RETURN = "to";

/** Go to the sign-in, and remember where to come back to. */
export function goToSignIn(): void {
  if (location.pathname === "/sign-in") return;
  const here = location.pathname + location.search + location.hash;
  const query = here === "/" ? "" : `?${RETURN}=${encodeURIComponent(here)}`;
  location.assign(`/sign-in${query}`);
}

/** Return the address to go to after the sign-in: one of this page, or its start. */
export function returnAddress(search: string): string {
  const to = new URLSearchParams(search).get(RETURN) ?? "/";
  // `//host` and `/\host` would lead to another site.
  return /^\/(?![/\\])/.test(to) && !to.startsWith("/sign-in") ? to : "/";
}
