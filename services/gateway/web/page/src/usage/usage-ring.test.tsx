// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { queryClient } from "../api/queries.ts";
import { newCanvas, settled } from "../testing/canvas.tsx";
import { serve } from "../testing/server.ts";
import { UsageRing } from "./usage-ring.tsx";

const canvas = newCanvas();
const spent = (micros: number) => ({ limit: { limit_micros: 4e6, period: "month" }, spent_micros: micros, resets_at: null });

test("the limits are read again when they are opened", async () => {
  queryClient.setQueryData(["me"], { id: "u1", role: "member" });
  serve({ "/api/v1/me/spend": spent(1e6), "/api/v1/quota": { items: [] } });
  await canvas.show(<UsageRing />);
  await settled(() => expect(canvas.element.textContent).toBe(""));
  await settled(() => expect(canvas.element.querySelector("button")?.title).toBe("Spent this month: $1.00 of $4.00"));
  serve({ "/api/v1/me/spend": spent(3e6), "/api/v1/quota": { items: [] } });
  await canvas.press(canvas.element.querySelector("button")!);
  await settled(() => expect(canvas.element.querySelector(".menu-item-hint")?.textContent).toBe("$3.00 of $4.00"));
});
