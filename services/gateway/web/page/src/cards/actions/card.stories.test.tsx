// @vitest-environment happy-dom
import { playAll } from "../../testing/stories.tsx";
import * as stories from "./card.stories.tsx";

playAll(stories);
