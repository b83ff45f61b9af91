/** Which links are followed, and which of them ask first. */
const QUERY_MAX = 64;
const SCHEMES = new Set(["http:", "https:", "mailto:"]);

export interface SafeLink {
  href: string;
  host: string;
  /** Whether the address could carry data out. */
  asks: boolean;
}

/** Return an address that may be followed; null for scripts, files and what is no address. */
export function safeLink(href: string): SafeLink | null {
  let url: URL;
  try {
    url = new URL(href);
  } catch {
    return null;
  }
  if (!SCHEMES.has(url.protocol)) return null;
  const host = url.protocol === "mailto:" ? url.pathname : url.host;
  return { href: url.href, host, asks: url.search.length + url.hash.length > QUERY_MAX };
}
