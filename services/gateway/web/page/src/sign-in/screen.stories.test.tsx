// @vitest-environment happy-dom
import { playAll } from "../testing/stories.tsx";
import * as stories from "./screen.stories.tsx";

playAll(stories);
