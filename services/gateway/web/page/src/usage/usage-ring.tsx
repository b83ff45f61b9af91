/** How much of one's limits is used: the spending and the workspaces. */
import { useQuery } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { me } from "../api/queries.ts";
import { Menu, MenuHeading, MenuItem } from "../ui/menu.tsx";
import { Ring } from "../ui/ring.tsx";
import { limitedOf, lookOf, sentenceOf } from "./limits.ts";
import { quota, readLimitsAgain, spend } from "./queries.ts";

const REFRESH_MS = 60_000;

export function UsageRing() {
  const [, navigate] = useLocation();
  const role = useQuery(me).data?.role;
  // Auditors have no chats, and nothing of theirs is limited.
  const options = { refetchInterval: REFRESH_MS, enabled: role !== undefined && role !== "auditor" };
  const spent = useQuery({ ...spend, ...options }).data;
  const has = useQuery({ ...quota, ...options }).data?.items ?? [];
  const limited = limitedOf(spent, has);
  const [first, ...others] = limited;
  if (!first) return null;
  const most = others.reduce((one, other) => (other.share > one.share ? other : one), first);
  const words = sentenceOf(most, spent?.resets_at ?? null);
  return (
    <Menu
      label="Your limits"
      button={(attributes) => (
        <button
          type="button"
          className="icon-button"
          aria-label={words}
          title={words}
          {...attributes}
          onClick={() => {
            readLimitsAgain();
            attributes.onClick();
          }}
        >
          <Ring share={most.share} look={lookOf(most.share)} />
        </button>
      )}
    >
      <MenuHeading>{words}</MenuHeading>
      {limited.map((each) => (
        <MenuItem key={each.name} hint={each.words} onChoose={() => navigate(each.href)}>
          {each.name}
        </MenuItem>
      ))}
    </Menu>
  );
}
