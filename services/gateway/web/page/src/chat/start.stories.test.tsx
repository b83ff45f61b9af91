// @vitest-environment happy-dom
import { playAll } from "../testing/stories.tsx";
import * as stories from "./start.stories.tsx";

playAll(stories);
