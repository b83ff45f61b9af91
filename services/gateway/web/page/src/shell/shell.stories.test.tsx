// @vitest-environment happy-dom
import { playAll } from "../testing/stories.tsx";
import * as stories from "./shell.stories.tsx";

playAll(stories);
