import { expect, test } from "vitest";
import { branchLink } from "./branch-links.ts";

const href = (origin: string | null, branch: string | null = "fix/a b", upstream: string | null = "origin/fix/a b") => branchLink(origin, branch, upstream)?.href;

test("a pushed branch leads to the form for a pull request of its host", () => {
  expect(href("https://github.com/acme/tide.git")).toBe("https://github.com/acme/tide/compare/fix/a%20b?expand=1");
  expect(href("git@gitlab.example.org:acme/sea/tide.git")).toBe(
    "https://gitlab.example.org/acme/sea/tide/-/merge_requests/new?merge_request%5Bsource_branch%5D=fix%2Fa%20b",
  );
  expect(href("ssh://git@bitbucket.org:22/acme/tide")).toBe("https://bitbucket.org/acme/tide/pull-requests/new?source=fix%2Fa%20b");
  expect(branchLink("https://github.com/acme/tide", "main", "origin/main")).toMatchObject({ host: "github.com", words: "Open a pull request" });
});

test("another host, and a branch that was not pushed, lead to the repository", () => {
  expect(href("https://git.example.org/acme/tide.git")).toBe("https://git.example.org/acme/tide");
  expect(href("https://github.com/acme/tide", "main", null)).toBe("https://github.com/acme/tide");
  expect(branchLink("https://github.com/acme/tide", "fix", "origin/main")).toMatchObject({ href: "https://github.com/acme/tide", words: "Open the repository" });
  expect(href("https://github.com/acme/tide", null)).toBe("https://github.com/acme/tide");
});

test("keys in an address are left out, and what is not on the web has no link", () => {
  expect(href("https://paula:secret@git.example.org/acme/tide")).toBe("https://git.example.org/acme/tide");
  for (const each of [null, "", "/srv/tide.git", "file:///srv/tide.git", "javascript:alert(1)", "https://github.com/"]) expect(href(each)).toBeUndefined();
});
