// @vitest-environment happy-dom
import { playAll } from "../testing/stories.tsx";
import * as stories from "./panel.stories.tsx";

playAll(stories);
