/** A share of a whole as a ring. */
import "./ring.css";

const RADIUS = 8;
const ROUND = 2 * Math.PI * RADIUS;

export type RingLook = "ok" | "near" | "over";

export function Ring({ share, look }: { share: number; look: RingLook }) {
  const used = Math.min(1, Math.max(0, share)) * ROUND;
  return (
    <svg className={`ring${look === "ok" ? "" : ` is-${look}`}`} viewBox="0 0 20 20" aria-hidden="true">
      <circle className="ring-whole" cx="10" cy="10" r={RADIUS} />
      <circle className="ring-used" cx="10" cy="10" r={RADIUS} strokeDasharray={`${used} ${ROUND}`} />
    </svg>
  );
}
