/** The messages of the chat that is shown, for what is beside them. */
import { createContext } from "react";
import type { Message } from "../api/types.ts";

export const MessagesContext = createContext<readonly Message[]>([]);
