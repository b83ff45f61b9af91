// @vitest-environment happy-dom
import { playAll } from "../testing/stories.tsx";
import * as stories from "./tool-card.stories.tsx";

playAll(stories);
