// @vitest-environment happy-dom
import { playAll } from "../testing/stories.tsx";
import * as stories from "./workspace.stories.tsx";

playAll(stories);
