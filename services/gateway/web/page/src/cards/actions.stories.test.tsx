// @vitest-environment happy-dom
import { playAll } from "../testing/stories.tsx";
import * as stories from "./actions.stories.tsx";

playAll(stories);
