/** The start: a first message makes a chat. */
import { useQuery } from "@tanstack/react-query";
import { me } from "../api/queries.ts";

export default function StartScreen() {
  const name = useQuery(me).data?.display_name;
  return (
    <main className="screen">
      <h1 className="screen-title">{name ? `Good to see you, ${name}` : "Good to see you"}</h1>
    </main>
  );
}
