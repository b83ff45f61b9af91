/** Whether the reader of a chat is at its end, and is kept there while it grows. */

/** Whether the end is followed, and where the scroller was when that was last looked at. */
export interface Following {
  isOn: boolean;
  top: number;
  /** While a linked message is being read: the place that is shown until then is not the reader's. */
  isSeeking: boolean;
}

const NEAR_BOTTOM = 48;

export function isNearEnd(element: HTMLElement): boolean {
  return element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_BOTTOM;
}

/** Whether the end is followed; sizes are reported before the event of a scroll that was made since, whose place counts. */
export function isFollowed(following: Following, element: HTMLElement): boolean {
  return following.isOn && (element.scrollTop === following.top || isNearEnd(element));
}
