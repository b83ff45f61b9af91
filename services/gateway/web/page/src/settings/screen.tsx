/**
 * One's own settings. Each section is a file of its own in this folder: add it to `SECTIONS`.
 */
import { type ComponentType, lazy, Suspense } from "react";
import { Sections } from "../shell/sections.tsx";
import { Skeleton } from "../ui/states.tsx";

export interface Section {
  name: string;
  title: string;
  component: ComponentType;
}

const SECTIONS: readonly Section[] = [
  { name: "display", title: "Display", component: lazy(() => import("./display.tsx")) },
];

export default function SettingsScreen({ section }: { section: string | undefined }) {
  return (
    <Suspense fallback={<Skeleton />}>
      <Sections base="/settings" title="Settings" sections={SECTIONS} section={section} />
    </Suspense>
  );
}
