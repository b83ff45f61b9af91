// @vitest-environment happy-dom
import { playAll } from "../testing/stories.tsx";
import * as stories from "./sidebar.stories.tsx";

playAll(stories);
