// @vitest-environment happy-dom
import { playAll } from "../testing/stories.tsx";
import * as stories from "./live-state.stories.tsx";

playAll(stories);
