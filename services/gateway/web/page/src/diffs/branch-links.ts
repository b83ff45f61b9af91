/** Where the branch of a repository is on the web, by the address that Git has for it. */

export interface BranchLink {
  href: string;
  host: string;
  /** What is there: a form for a pull request, or the repository. */
  words: string;
}

/** How a host opens a form for a pull request of a branch. */
type Form = (repository: string, branch: string) => string;

const FORMS: readonly (readonly [name: string, words: string, form: Form])[] = [
  ["github", "Open a pull request", (at, branch) => `${at}/compare/${path(branch)}?expand=1`],
  ["gitlab", "Open a merge request", (at, branch) => `${at}/-/merge_requests/new?merge_request%5Bsource_branch%5D=${encodeURIComponent(branch)}`],
  ["bitbucket", "Open a pull request", (at, branch) => `${at}/pull-requests/new?source=${encodeURIComponent(branch)}`],
];

/**
 * Return the link of a branch; null if its repository is not on the web. A branch that was not pushed
 * has none there: it may follow the branch that it was made from.
 */
export function branchLink(origin: string | null, branch: string | null, upstream: string | null): BranchLink | null {
  const at = webAddress(origin ?? "");
  if (!at) return null;
  const { host } = new URL(at);
  const known = FORMS.find(([name]) => host.split(".").includes(name));
  if (!known || !branch || upstream !== `origin/${branch}`) return { href: at, host, words: "Open the repository" };
  return { href: known[2](at, branch), host, words: known[1] };
}

/** Return the address of a repository for browsers, without what signs in there; empty if it has none. */
function webAddress(origin: string): string {
  const [, host = "", place = ""] = /^(?:ssh:\/\/)?(?:[\w.-]+@)([\w.-]+)(?::\d+)?[:/](.+)$/.exec(origin) ?? [];
  const address = host ? `https://${host}/${place}` : origin;
  if (!URL.canParse(address)) return "";
  const { protocol, host: found, pathname } = new URL(address);
  if (protocol !== "https:" && protocol !== "http:") return "";
  const bare = pathname.replace(/\/+$/, "").replace(/\.git$/, "");
  return bare.length > 1 ? `${protocol}//${found}${bare}` : "";
}

/** A branch may have slashes, which stay. */
function path(branch: string): string {
  return branch.split("/").map(encodeURIComponent).join("/");
}
