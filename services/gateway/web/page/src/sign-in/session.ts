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
export function returnAddress(search: string, origin = location.origin): string {
  const to = new URLSearchParams(search).get(RETURN) ?? "/";
  try {
    // Browsers drop tabs and line ends, read `\` as `/` and resolve dots, so only what they read is judged.
    const read = new URL(to, origin);
    const isHere = to.startsWith("/") && read.origin === origin && !read.pathname.startsWith("//");
    return isHere && !read.pathname.startsWith("/sign-in") ? read.pathname + read.search + read.hash : "/";
  } catch {
    return "/";
  }
}

const REMEMBERED = "parley.return";

/** Remember the address over a sign-in that leaves this page. */
export function rememberAddress(address: string): void {
  try {
    sessionStorage.setItem(REMEMBERED, address);
  } catch {
    // Without storage the person arrives at the start.
  }
}

/** Return the address that was remembered, once, if the page begins at its start. */
export function rememberedAddress(): string | null {
  try {
    const address = sessionStorage.getItem(REMEMBERED);
    sessionStorage.removeItem(REMEMBERED);
    return location.pathname === "/" && address && address !== "/" ? returnAddress(`?to=${encodeURIComponent(address)}`) : null;
  } catch {
    return null;
  }
}
