/** A link that shows its host, and asks before an address that could carry data out is opened. */
import type { MouseEvent, ReactNode } from "react";
import { safeLink } from "./links.ts";

interface LinkProps {
  href: string;
  /** The words of the link; its host is beside them unless they have it. */
  text: string;
  children: ReactNode;
}

export function Link({ href, text, children }: LinkProps) {
  const safe = safeLink(href);
  if (!safe) return <span title="This is no address that can be followed">{children}</span>;
  function ask(event: MouseEvent): void {
    if (safe?.asks && !confirm(`This link sends data to ${safe.host}:\n\n${safe.href}\n\nOpen it?`)) event.preventDefault();
  }
  return (
    <>
      <a href={safe.href} title={safe.href} target="_blank" rel="noopener noreferrer nofollow" onClick={ask}>
        {children}
      </a>
      {!text.includes(safe.host) && <span className="link-host"> ({safe.host})</span>}
    </>
  );
}
