/**
 * Administration. Each section is a file of its own in this folder: add it to `SECTIONS`.
 */
import { useQuery } from "@tanstack/react-query";
import { Suspense } from "react";
import { me } from "../api/queries.ts";
import type { Section } from "../settings/screen.tsx";
import { Sections } from "../shell/sections.tsx";
import { Empty, Skeleton } from "../ui/states.tsx";

const SECTIONS: readonly Section[] = [];

export default function AdminScreen({ section }: { section: string | undefined }) {
  const role = useQuery(me).data?.role;
  if (role && role !== "owner" && role !== "admin") {
    return <Empty title="This is not there">Administrators see this page.</Empty>;
  }
  if (SECTIONS.length === 0) {
    return (
      <Empty title="Administration">
        Use the <code>parley</code> command or <a href="/docs">the API</a>.
      </Empty>
    );
  }
  return (
    <Suspense fallback={<Skeleton />}>
      <Sections base="/admin" title="Administration" sections={SECTIONS} section={section} />
    </Suspense>
  );
}
