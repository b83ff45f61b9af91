/**
 * The addresses of the page. Each screen is a file of its own that is loaded when it is opened.
 * The gateway lists the same addresses in `PAGE_PATHS` of `services/gateway/routes/table.py`.
 */
import { lazy, Suspense } from "react";
import { Route, Switch } from "wouter";
import { StateScreen } from "./shell/screen-head.tsx";
import { Shell } from "./shell/shell.tsx";
import { Empty, Skeleton } from "./ui/states.tsx";

const SignIn = lazy(() => import("./sign-in/screen.tsx"));
const Start = lazy(() => import("./chat/start.tsx"));
const Chat = lazy(() => import("./chat/screen.tsx"));
const Races = lazy(() => import("./races/list.tsx"));
const Race = lazy(() => import("./races/screen.tsx"));
const Waiting = lazy(() => import("./waiting/screen.tsx"));
const Settings = lazy(() => import("./settings/screen.tsx"));
const Admin = lazy(() => import("./admin/screen.tsx"));

export function Routes() {
  return (
    <Switch>
      <Route path="/sign-in">
        <Suspense>
          <SignIn />
        </Suspense>
      </Route>
      <Route>
        <Shell>
          <Suspense fallback={<Loading />}>
            <Switch>
              <Route path="/" component={Start} />
              <Route path="/chats/:chatId">
                {({ chatId }) => <Chat key={chatId} chatId={chatId} />}
              </Route>
              <Route path="/races" component={Races} />
              <Route path="/races/:raceId">
                {({ raceId }) => <Race key={raceId} raceId={raceId} />}
              </Route>
              <Route path="/waiting" component={Waiting} />
              <Route path="/settings/:section?">
                {({ section }) => <Settings section={section} />}
              </Route>
              <Route path="/admin/:section?">{({ section }) => <Admin section={section} />}</Route>
              <Route>
                <StateScreen>
                  <Empty title="There is nothing here" level={1}>Choose a chat, or begin a new one.</Empty>
                </StateScreen>
              </Route>
            </Switch>
          </Suspense>
        </Shell>
      </Route>
    </Switch>
  );
}

function Loading() {
  return (
    <main className="main-loading">
      <Skeleton rows={5} />
    </main>
  );
}
