// @vitest-environment happy-dom
import { playAll } from "../testing/stories.tsx";
import * as stories from "./execute.stories.tsx";

playAll(stories);
