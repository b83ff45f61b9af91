// @vitest-environment happy-dom
import { playAll } from "../testing/stories.tsx";
import * as stories from "./row.stories.tsx";

playAll(stories);
