// @vitest-environment happy-dom
import { playAll } from "../testing/stories.tsx";
import * as stories from "./assistant-message.stories.tsx";

playAll(stories);
